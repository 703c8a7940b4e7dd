// What docs/api-rules.md says about methods and unknown fields.
import { absent, denial, invalid, type Rule } from "./rule.js";

/** Methods and unknown fields. */
export const methods: readonly Rule[] = [
  {
    anchor: "methods",
    says: "GET on a collection is List",
    http: "GET /iam/v2beta1/groups?uidp.children_of=<shelf>&page_size=1",
    expect: { json: { groups: [{ uid: "<atlas>" }], nextPageToken: /./, totalCount: "3", skipped: 0 } },
  },
  {
    anchor: "methods",
    says: "GET on a uid is Get and returns the resource",
    http: "GET /iam/v2beta1/groups/<atlas>",
    expect: { json: { uid: "<atlas>", name: "atlas", description: "first of all" } },
  },
  {
    anchor: "methods",
    says: "POST on a parent is Create: the body is the resource, the parent is in the path, the answer has a new uid",
    http: "POST /iam/v2beta1/groups/<fresh>",
    body: { name: "core", description: "d" },
    expect: {
      json: { uid: /^<fresh>\/[0-9a-f]{16}$/, name: "core", description: "d" },
      headers: { "content-type": /^application\/json/ },
    },
  },
  {
    anchor: "methods",
    says: "PATCH on a uid is Update and returns the whole resource after the change",
    http: "PATCH /iam/v2beta1/groups/<fresh>",
    body: { name: "after" },
    expect: { json: { uid: "<fresh>", name: "after", description: "as it was", verified: false, createTime: /Z$/ } },
  },
  {
    anchor: "methods",
    says: "DELETE on a uid is Delete, and its answer has no byte",
    http: "DELETE /iam/v2beta1/groups/<fresh>",
    expect: { text: "", status: 200 },
  },
  {
    anchor: "methods",
    says: "an identity is created in a group by POST, and deleted by DELETE with an empty answer",
    steps: [
      {
        http: "POST /iam/v2beta1/identities/<fresh>",
        body: { name: "bot", description: "d", claimMatch: { issuer: "https://issuer.example", subject: "s" } },
        expect: {
          json: {
            uid: /^<fresh>\/[0-9a-f]{16}$/,
            name: "bot",
            description: "d",
            claimMatch: { issuer: "https://issuer.example", subject: "s" },
          },
        },
        keep: { made: "uid" },
      },
      { http: "DELETE /iam/v2beta1/identities/<made>", expect: { text: "" } },
    ],
  },
  {
    anchor: "methods",
    says: "a role binding is created in a group by POST, and deleted by DELETE with an empty answer",
    steps: [
      {
        http: "POST /iam/v2beta1/roleBindings/<fresh>",
        body: { identityUid: "<freshIdentity>", roleUid: "<viewerRole>" },
        expect: { json: { uid: /^<fresh>\/[0-9a-f]{16}$/, identity: { uid: "<freshIdentity>" } } },
        keep: { made: "uid" },
      },
      { http: "DELETE /iam/v2beta1/roleBindings/<made>", expect: { text: "" } },
    ],
  },
  {
    anchor: "methods",
    says: "over gRPC and Connect the parent is the field parent",
    call: "CreateGroup",
    over: ["gRPC", "Connect"],
    request: { parent: "<fresh>", group: { name: "core" } },
    expect: { result: { uid: /^<fresh>\// } },
  },
  {
    anchor: "methods",
    says: "other methods are a verb after a colon",
    http: "GET /iam/v2beta1/groups:checkEligibility",
    expect: { json: { eligible: /^(true|false)$/ } },
  },
  {
    anchor: "methods",
    says: "a method without side effects is served by Connect with GET",
    http: "GET /chainguard.platform.iam.v2beta1.GroupsService/GetGroup?connect=v1&encoding=json&message=%7B%22uid%22%3A%22<shelf>%22%7D",
    expect: { json: { uid: "<shelf>" } },
  },
  {
    anchor: "methods",
    says: "a change that fails in one part changes nothing",
    steps: [
      {
        call: "BatchCreateRoleBindings",
        request: {
          parent: "<fresh>",
          roleUid: "<viewerRole>",
          requests: [
            { roleBinding: { identityUid: "<freshIdentity>" } },
            { roleBinding: { identityUid: "<fresh>/0123456789abcdef" } },
          ],
        },
        expect: { code: "INVALID_ARGUMENT" },
      },
      { call: "ListRoleBindings", request: { group: "<fresh>" }, expect: { result: { totalCount: "0" } } },
    ],
  },
  {
    anchor: "methods",
    says: "an answer comes after the change is stored: the next call sees it",
    steps: [
      { call: "UpdateGroup", request: { group: { uid: "<fresh>", name: "after" } }, expect: {} },
      { call: "GetGroup", request: { uid: "<fresh>" }, expect: { result: { name: "after" } } },
    ],
  },
  ...["GET", "DELETE"].map(
    (verb): Rule => ({
      anchor: "methods",
      says: `${verb} may name a type of the body that it does not have`,
      http: `${verb} /iam/v2beta1/groups/<fresh>`,
      headers: { "content-type": "application/json" },
      expect: {},
    }),
  ),
  {
    anchor: "methods",
    says: "HEAD is GET without the body",
    http: "HEAD /iam/v2beta1/groups/<shelf>",
    expect: { text: "", headers: { "content-type": /^application\/json/ } },
  },
  {
    anchor: "methods",
    says: "a known path with another verb names those that it has",
    http: "PUT /iam/v2beta1/groups",
    expect: { code: "UNIMPLEMENTED", status: 405, headers: { allow: "GET, HEAD, OPTIONS" } },
  },

  {
    anchor: "unknown-fields",
    says: "a body may have keys that the service does not know",
    http: "POST /iam/v2beta1/groups/<fresh>",
    body: { name: "core", colour: "red" },
    expect: { json: { name: "core", colour: absent } },
  },
  {
    anchor: "unknown-fields",
    says: "with --strict-body such a key is refused",
    shownBy: "test/transport/rest/decode-errors.test.ts",
    test: "unknown, strict",
  },
  {
    anchor: "unknown-fields",
    says: "an unknown query parameter is refused",
    http: "GET /iam/v2beta1/groups?nmae=atlas",
    expect: invalid(["nmae", /is not a parameter of this method/]),
  },
  {
    anchor: "unknown-fields",
    says: "fields that the service fills in are ignored in requests",
    call: "CreateGroup",
    request: {
      parent: "<fresh>",
      group: { uid: "<org>", name: "core", createTime: "2000-01-01T00:00:00Z", status: 3, resourceLimits: { idps: 5 } },
    },
    expect: { result: { uid: /^<fresh>\//, createTime: /^20(?!00)/, resourceLimits: {} } },
  },
  {
    anchor: "unknown-fields",
    says: "what a client has read it may send back",
    http: "PATCH /iam/v2beta1/groups/<fresh>",
    body: {
      uid: "<fresh>",
      name: "before",
      description: "as it was",
      resourceLimits: {},
      verified: false,
      createTime: "1970-01-01T00:00:01.000Z",
      updateTime: "1970-01-01T00:00:01.000Z",
    },
    expect: { json: { uid: "<fresh>", name: "before", description: "as it was" } },
  },
  {
    anchor: "what-is-not-implemented",
    says: "a method that is not implemented says why to callers with the right to call it",
    steps: [
      { call: "ListProjects", request: {} },
      { call: "GetProject", request: { name: "curl" } },
      { call: "GetStigReport", request: { repoUid: "<repo>", digest: "<digest>" } },
    ].map((step) => ({
      ...step,
      expect: {
        code: "UNIMPLEMENTED",
        message: new RegExp(`^Unimplemented: \\w+Service\\.${step.call}: n`),
        details: [],
      },
    })),
  },
  {
    anchor: "what-is-not-implemented",
    says: "other callers of such a method get PERMISSION_DENIED",
    call: "GetStigReport",
    as: "viewer",
    request: { repoUid: "<repo>", digest: "<digest>" },
    expect: denial("repo.list and manifest.metadata.list at <repo>"),
  },
  {
    anchor: "what-is-not-implemented",
    says: "the path of a service that is not declared is 404",
    http: "GET /libraries/v1/entitlements",
    expect: { code: "NOT_FOUND", status: 404 },
  },
];
