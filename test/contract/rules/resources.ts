// What docs/api-rules.md says about all resources and their uids.
import { absent, invalid, type Rule, type Step } from "./rule.js";

const NAME_RULE = "name must match ^[a-z0-9 ._-]{1,}$";
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{3})?Z$/;
/** Over REST: three digits of a second, always. */
const MILLISECONDS = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

const createNamed = (name: string): Step => ({
  call: "CreateGroup",
  request: { parent: "<fresh>", group: { name } },
  expect: { result: { name } },
});

// The uid and both times of one of each kind.
const carriers: Readonly<Record<string, string>> = {
  GetGroup: "<full>",
  GetIdentity: "<identity>",
  GetRole: "<role>",
  GetIdentityProvider: "<identityProvider>",
  GetAccountAssociation: "<accountAssociation>",
  GetRepo: "<repo>",
  GetAdvisory: "<advisory>",
};

/** All resources. */
const fields: readonly Rule[] = [
  ...Object.entries(carriers).map(
    ([call, uid]): Rule => ({
      anchor: "resources",
      says: `what ${call} returns has a uid, a create time and an update time in milliseconds`,
      call,
      request: { uid },
      expect: {
        result: { uid, createTime: TIME, updateTime: TIME },
        json: { uid, createTime: MILLISECONDS, updateTime: MILLISECONDS, id: absent, createdAt: absent },
      },
    }),
  ),
  {
    anchor: "resources",
    says: "a name has lower-case letters, digits, blanks, dots, underscores and hyphens",
    steps: ["a", "az 09._-", " ", "a".repeat(1_000)].map(createNamed),
  },
  ...["", "Core", "grün", "ａ", "a/b", "a\tb", "core\n"].map(
    (name): Rule => ({
      anchor: "resources",
      says: `a name is not ${JSON.stringify(name)}`,
      call: "CreateGroup",
      request: { parent: "<fresh>", group: { name } },
      expect: invalid(["name", name === "" ? `${NAME_RULE}: name is required` : NAME_RULE]),
    }),
  ),
  {
    anchor: "resources",
    says: "a name has at most 1,000 characters",
    call: "CreateGroup",
    request: { parent: "<fresh>", group: { name: "a".repeat(1_001) } },
    expect: invalid(["name", "name must be at most 1000 characters"]),
  },
  ...Object.entries({
    CreateIdentity: { identity: { name: "Upper", claimMatch: { issuer: "https://issuer.example", subject: "s" } } },
    CreateRole: { role: { name: "Upper", capabilities: ["CAP_IAM_GROUPS_LIST"] } },
    CreateAccountAssociation: { accountAssociation: { name: "Upper" } },
  }).map(
    ([call, fields]): Rule => ({
      anchor: "resources",
      says: `${call} has the same rule for names`,
      call,
      request: { parent: "<fresh>", ...fields },
      expect: invalid(["name", NAME_RULE]),
    }),
  ),
  {
    anchor: "resources",
    says: "a description has any letters, and at most 512",
    call: "CreateGroup",
    request: { parent: "<fresh>", group: { name: "a", description: "😀".repeat(512) } },
    expect: { result: { description: "😀".repeat(512) } },
  },
  {
    anchor: "resources",
    says: "a description has not more than 512 characters",
    call: "CreateGroup",
    request: { parent: "<fresh>", group: { name: "a", description: "x".repeat(513) } },
    expect: invalid(["description", "description must be at most 512 characters"]),
  },
  {
    anchor: "resources",
    says: "a description has no control characters",
    steps: ["a\nb", "\u001f", "\u007f", "\u0085", "\u2028"].map((description) => ({
      call: "CreateGroup",
      request: { parent: "<fresh>", group: { name: "a", description } },
      expect: invalid(["description", "description must not contain control characters"]),
    })),
  },
  {
    anchor: "resources",
    says: "keys of JSON are camelCase, and times RFC 3339 in UTC with three digits of a second",
    http: "GET /iam/v2beta1/groups/<atlas>",
    expect: {
      text: '{"uid":"<atlas>","name":"atlas","description":"first of all","resourceLimits":{},"verified":false,"createTime":"1970-01-01T00:00:01.000Z","updateTime":"1970-01-01T00:00:09.000Z"}',
      headers: { "content-type": /^application\/json/ },
    },
  },
];

/** Uids. */
const uids: readonly Rule[] = [
  {
    anchor: "uids",
    says: "the uid of a root group is 40 hexadecimal digits",
    call: "ListGroups",
    request: { uidp: { inRoot: true } },
    expect: { result: { groups: [{ uid: /^[0-9a-f]{40}$/ }] } },
  },
  {
    anchor: "uids",
    says: "the uid of a child is that of its parent and one more segment of 16 digits",
    call: "CreateGroup",
    request: { parent: "<freshChild>", group: { name: "new" } },
    expect: { result: { uid: /^<freshChild>\/[0-9a-f]{16}$/ } },
  },
  ...Object.entries({
    CreateIdentity: { identity: { name: "a", claimMatch: { issuer: "https://issuer.example", subject: "s" } } },
    CreateRole: { role: { name: "a", capabilities: ["CAP_IAM_GROUPS_LIST"] } },
    CreateRoleBinding: { roleBinding: { identityUid: "<freshIdentity>", roleUid: "<viewerRole>" } },
    CreateRepo: { repo: { name: "a" } },
  }).map(
    ([call, fields]): Rule => ({
      anchor: "uids",
      says: `what ${call} makes has a new uid below its group's`,
      call,
      request: { parent: "<fresh>", ...fields },
      expect: { result: { uid: /^<fresh>\/[0-9a-f]{16}$/ } },
    }),
  ),
  {
    anchor: "uids",
    says: "a built-in role has one segment",
    call: "ListRoles",
    request: { name: "viewer" },
    expect: { result: { roles: [{ uid: /^[0-9a-f]{40}$/ }], totalCount: "1" } },
  },
  {
    anchor: "uids",
    says: "over REST the slashes of a uid may be %2F",
    http: "GET /iam/v2beta1/groups/<encodedTwig>",
    expect: { json: { uid: "<twig>" } },
  },
  {
    anchor: "uids",
    says: "the uid of a person has one segment, and follows from issuer and subject",
    steps: [0, 1].map((i) => ({
      call: "LookupIdentity",
      request: { issuer: "https://login.example", subject: "ann" },
      expect: { result: { uid: i === 0 ? /^[0-9a-f]{40}$/ : "<first>" } },
      ...(i === 0 && { keep: { first: "uid" } }),
    })),
  },
  {
    anchor: "uids",
    says: "a uid has at most 64 segments",
    call: "GetGroup",
    request: { uid: `<org>${"/0123456789abcdef".repeat(64)}` },
    expect: invalid(["uid", /must be a uid/]),
  },
  {
    anchor: "uids",
    says: "part of a uid is none",
    call: "GetGroup",
    request: { uid: "<atlas>0" },
    expect: invalid(["uid", "uid must be a uid, such as the service assigns"]),
  },
];

/** Resources and uids. */
export const resources: readonly Rule[] = [...fields, ...uids];
