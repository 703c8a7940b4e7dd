// What docs/api-rules.md says about errors.
import {
  absent,
  alreadyExists,
  denial,
  each,
  invalid,
  notFound,
  precondition,
  type Rule,
  unauthenticated,
} from "./rule.js";

const NAME_RULE = "name must match ^[a-z0-9 ._-]{1,}$";
// The description alone adds it; the message is the same for every name.
const MISSING_NAME = `${NAME_RULE}: name is required`;
const TYPE = "type.googleapis.com/google.rpc.";
const domain = "iam.127.0.0.1";

/** The form of errors, and their reasons. */
export const errors: readonly Rule[] = [
  {
    anchor: "errors",
    says: "over REST an error is a google.rpc.Status: a numeric code, a message and details, each with its type",
    http: "POST /iam/v2beta1/groups/<fresh>",
    body: {},
    expect: {
      code: "INVALID_ARGUMENT",
      status: 400,
      headers: { "content-type": /^application\/json/ },
      text: /^\{"code":3,"message":"[^"]*","details":\[\{"@type":"[^"]*ErrorInfo","reason":"[^"]*","domain":"[^"]*"\},\{.*\}\]\}$/,
      json: {
        code: 3,
        message: `Invalid argument: name: ${NAME_RULE}`,
        details: [
          { "@type": `${TYPE}ErrorInfo`, reason: "INVALID_ARGUMENT", domain, metadata: absent },
          { "@type": `${TYPE}BadRequest`, fieldViolations: [{ field: "name", description: MISSING_NAME }] },
        ],
      },
    },
  },
  {
    anchor: "errors",
    says: "the name of a group that is missing is reported with its rule",
    call: "CreateGroup",
    request: { parent: "<org>", group: {} },
    expect: invalid(["name", MISSING_NAME]),
  },
  {
    anchor: "errors",
    says: "the name of a group that breaks its rule is reported in the same way",
    call: "CreateGroup",
    request: { parent: "<org>", group: { name: "Core" } },
    expect: invalid(["name", NAME_RULE]),
  },
  {
    anchor: "errors",
    says: "the deletion of a group with repos is code 9 with the type RESOURCE_NOT_EMPTY",
    http: "DELETE /iam/v2beta1/groups/<fresh>",
    made: ["<freshRepo>"],
    expect: {
      code: "FAILED_PRECONDITION",
      status: 400,
      json: {
        code: 9,
        message: "Precondition failed: cannot delete group with child repos",
        details: [
          { "@type": `${TYPE}ErrorInfo`, reason: "FAILED_PRECONDITION", domain, metadata: { repos: "1" } },
          {
            "@type": `${TYPE}PreconditionFailure`,
            violations: [{ type: "RESOURCE_NOT_EMPTY", description: "cannot delete group with child repos" }],
          },
        ],
      },
    },
  },
  {
    anchor: "errors",
    says: "gRPC and Connect carry the same code, text and details",
    call: "DeleteGroup",
    over: ["gRPC", "Connect"],
    request: { uid: "<fresh>" },
    made: ["<freshRepo>"],
    expect: precondition("RESOURCE_NOT_EMPTY", "cannot delete group with child repos"),
  },
  {
    anchor: "errors",
    says: "every field that is wrong is named",
    call: "CreateGroup",
    request: { parent: "<fresh>", group: { name: "", description: "a\tb" } },
    expect: invalid(["name", MISSING_NAME], ["description", "description must not contain control characters"]),
  },
  {
    anchor: "errors",
    says: "every parameter of a list that is wrong is named",
    call: "ListGroups",
    request: { pageSize: -1, skip: -2, orderBy: "age" },
    expect: invalid(
      [/^page_?[sS]ize$/, "pageSize must not be negative"],
      ["skip", "skip must not be negative"],
      [/^order_?[bB]y$/, /^orderBy must be one of uid, name, created_at, updated_at, optionally followed by " asc"/],
    ),
  },
  ...Object.entries({ GetGroup: "uid", DeleteGroup: "uid", UpdateGroup: "group.uid" }).flatMap(
    ([call, field]): Rule[] => [
      {
        anchor: "errors",
        says: `${call} needs a uid`,
        call,
        over: ["gRPC", "Connect"],
        request: {},
        expect: invalid([field, `${field} is required`]),
      },
      {
        anchor: "errors",
        says: `the uid of ${call} is one`,
        call,
        request: call === "UpdateGroup" ? { group: { uid: "core", name: "core" } } : { uid: "<org>/x" },
        expect: invalid([field, `${field} must be a uid, such as the service assigns`]),
      },
    ],
  ),
  {
    anchor: "errors",
    says: "the parent of a group is a group",
    call: "CreateGroup",
    request: { parent: "shelf", group: { name: "core" } },
    expect: invalid(["parent", "parent must be the uid of a group"]),
  },
  {
    anchor: "errors",
    says: "the token is checked before all else",
    call: "GetGroup",
    as: "anonymous",
    request: { uid: "atlas" },
    expect: unauthenticated,
  },
  {
    anchor: "errors",
    says: "the permission is checked before the values",
    call: "CreateGroup",
    as: "viewer",
    request: { parent: "<shelf>", group: { name: "" } },
    expect: denial("groups.create at <shelf>"),
  },
  {
    anchor: "errors",
    says: "the permission is checked before the state",
    call: "DeleteGroup",
    as: "viewer",
    request: { uid: "<shelf>" },
    expect: denial("groups.delete at <shelf>"),
  },
  {
    anchor: "errors",
    says: "the field of a violation is named as in the proto over gRPC",
    call: "ListGroups",
    over: ["gRPC"],
    request: { uidp: { descendantsOf: "%" } },
    expect: {
      code: "INVALID_ARGUMENT",
      details: [{ "@type": `${TYPE}BadRequest`, fieldViolations: [{ field: "uidp.descendants_of" }] }],
    },
  },
  {
    anchor: "errors",
    says: "the field of a violation is named as in JSON over REST and Connect with JSON",
    call: "ListGroups",
    over: ["REST", "Connect"],
    request: { uidp: { descendantsOf: "%" } },
    expect: {
      code: "INVALID_ARGUMENT",
      details: [{ "@type": `${TYPE}BadRequest`, fieldViolations: [{ field: "uidp.descendantsOf" }] }],
    },
  },

  {
    anchor: "error-reasons",
    says: "INVALID_ARGUMENT is 400 and names the field and the rule",
    call: "GetGroup",
    request: { uid: "atlas" },
    expect: { ...invalid(["uid", "uid must be a uid, such as the service assigns"]), status: 400 },
  },
  {
    anchor: "error-reasons",
    says: "FAILED_PRECONDITION is 400 and has a type for programs",
    call: "DeleteRole",
    request: { uid: "<role>" },
    expect: { code: "FAILED_PRECONDITION", status: 400, details: [{ violations: each({ type: /^[A-Z_]+$/ }) }] },
  },
  {
    anchor: "error-reasons",
    says: "UNAUTHENTICATED is 401 and asks for a bearer token",
    http: "GET /iam/v2beta1/groups",
    as: "anonymous",
    expect: { ...unauthenticated, status: 401, headers: { "www-authenticate": /^Bearer realm="arbor"/ } },
  },
  {
    anchor: "error-reasons",
    says: "PERMISSION_DENIED is 403 for what the caller may not",
    call: "UpdateGroup",
    as: "viewer",
    request: { group: { uid: "<shelf>", name: "after" } },
    expect: { ...denial("groups.update at <shelf>"), status: 403 },
  },
  {
    anchor: "error-reasons",
    says: "PERMISSION_DENIED is the answer for what does not exist as well",
    call: "GetGroup",
    request: { uid: "<random>" },
    expect: denial("groups.list at <random>"),
  },
  {
    anchor: "error-reasons",
    says: "NOT_FOUND is 404 for a caller who may know, and names type and resource",
    call: "GetGroup",
    request: { uid: "<ghost>" },
    expect: { ...notFound("iam.chainguard.dev/Group", "<ghost>"), status: 404 },
  },
  {
    anchor: "error-reasons",
    says: "ALREADY_EXISTS is 409 where there can be only one",
    call: "CreateRepo",
    request: { parent: "<full>", repo: { name: "one" } },
    expect: { ...alreadyExists("registry.chainguard.dev/Repo"), status: 409 },
  },
  {
    anchor: "error-reasons",
    says: "UNIMPLEMENTED is 501 for what is not served",
    call: "registry.Registry.GetSbom",
    as: "admin",
    request: { repoId: "<repo>", digest: "<digest>" },
    expect: { code: "UNIMPLEMENTED", status: 501, details: [] },
  },
  {
    anchor: "error-reasons",
    says: "RESOURCE_IN_USE is the type for a role with bindings",
    call: "DeleteRole",
    request: { uid: "<role>" },
    expect: precondition("RESOURCE_IN_USE", /./),
  },
  {
    anchor: "error-reasons",
    says: "OWNER_REQUIRED is the type for a root group that would lose its last owner",
    call: "DeleteRoleBinding",
    as: "freshOwner",
    request: { uid: "<freshOwnerBinding>" },
    expect: precondition("OWNER_REQUIRED", /./),
  },
  {
    anchor: "error-reasons",
    says: "RESOURCE_EXHAUSTED is 429 and tells when to try again",
    shownBy: "test/contract/groups-access.test.ts",
    test: "takes one request a day",
  },
  {
    anchor: "error-reasons",
    says: "the domain is that of the setting where there is one",
    shownBy: "test/config/origin.test.ts",
    test: "iam.localhost",
  },
  {
    anchor: "error-reasons",
    says: "the codes that no request brings about have the HTTP status of the page as well",
    shownBy: "test/codec/error-json.test.ts",
    test: "code * is HTTP",
  },
];
