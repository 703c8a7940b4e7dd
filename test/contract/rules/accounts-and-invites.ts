// What docs/api-rules.md says about account associations and invites.
import {
  absent,
  alreadyExists,
  type Expectation,
  invalid,
  type Pattern,
  type Rule,
  rejects,
  type Step,
} from "./rule.js";

const createsInvite: Step = {
  call: "CreateGroupInvite",
  request: { parent: "<fresh>", groupInvite: { roleUid: "<viewerRole>", ttl: "3600s" } },
  expect: { result: { code: /./, keyId: /./, role: { uid: "<viewerRole>" }, expirationTime: /Z$/ } },
  keep: { made: "uid", code: "code" },
};

const updatesInvite = (groupInvite: object, updateMask: string, expect: Expectation): Step => ({
  call: "UpdateGroupInvite",
  request: { groupInvite: { uid: "<made>", ...groupInvite }, updateMask },
  expect,
});
const listsInvites = (request: object, uids: readonly string[]): Step => ({
  call: "ListGroupInvites",
  request: { uidp: { childrenOf: "<fresh>" }, ...request },
  expect: { result: { groupInvites: uids.map((uid) => ({ uid })) } },
});
const rejectsAssociation = (what: string, association: object, field: string, description: string): Rule =>
  rejects(`an association with ${what} is rejected`, {
    anchor: "account-associations",
    call: "CreateAccountAssociation",
    request: { parent: "<fresh>", accountAssociation: { name: "a", ...association } },
    violations: [[field, description]],
  });
const rejectsInvite = (what: string, invite: object, field: string, description: string): Rule =>
  rejects(`an invite with ${what} is rejected`, {
    anchor: "invites",
    call: "CreateGroupInvite",
    request: { parent: "<fresh>", groupInvite: { roleUid: "<viewerRole>", ttl: "60s", ...invite } },
    violations: [[field, description]],
  });

const amazon = { account: "123456789012" };
const google = { projectId: "p", projectNumber: "any text" };
// What an association has before and after an update, over REST, where a body without a key differs from one with it.
const updatesAssociation = (what: string, mask: string, body: object, after: Record<string, Pattern>): Rule => ({
  anchor: "account-associations",
  says: `an update of an association changes ${what}`,
  steps: [
    {
      call: "CreateAccountAssociation",
      request: { parent: "<fresh>", accountAssociation: { name: "accounts", description: "d", amazon, google } },
      expect: {},
    },
    { http: `PATCH /iam/v2beta1/accountAssociations/<fresh>${mask}`, body, expect: { json: after } },
    { call: "GetAccountAssociation", request: { uid: "<fresh>" }, expect: { json: after } },
  ],
});

/** Account associations. */
export const accountAssociations: readonly Rule[] = [
  {
    anchor: "account-associations",
    says: "the uid of an association is that of its group",
    call: "CreateAccountAssociation",
    request: { parent: "<fresh>", accountAssociation: { name: "a", description: "d" } },
    expect: { result: { uid: "<fresh>", name: "a", description: "d" } },
  },
  {
    anchor: "account-associations",
    says: "a second association is ALREADY_EXISTS",
    call: "CreateAccountAssociation",
    request: { parent: "<full>", accountAssociation: { name: "a" } },
    expect: alreadyExists("iam.chainguard.dev/AccountAssociation"),
  },
  {
    anchor: "account-associations",
    says: "the number of a Google project is any text",
    call: "CreateAccountAssociation",
    request: { parent: "<fresh>", accountAssociation: { name: "a", google: { projectId: "p", projectNumber: "n-1" } } },
    expect: { result: { google: { projectId: "p", projectNumber: "n-1" } } },
  },
  rejectsAssociation("no name", { name: "", amazon }, "name", "name must match ^[a-z0-9 ._-]{1,}$: name is required"),
  rejectsAssociation(
    "an account of letters",
    { amazon: { account: "12345678901x" } },
    "amazon",
    "amazon.account must be 12 digits",
  ),
  rejectsAssociation("no project", { google: { projectNumber: "1" } }, "google", "google.projectId is required"),
  ...Object.entries({
    "no project number": null,
    "a project number of 257 characters": "x".repeat(257),
    "a project number with a line break": "4\n2",
  }).map(([what, projectNumber]) =>
    rejectsAssociation(
      what,
      { google: { projectId: "p", projectNumber } },
      "google",
      "google.projectNumber is required",
    ),
  ),
  rejectsAssociation("no tenant", { azure: { clientIds: { a: "b" } } }, "azure", "azure.tenantId is required"),
  rejectsAssociation(
    "an empty client",
    { azure: { tenantId: "t", clientIds: { a: "" } } },
    "azure",
    "azure.clientIds must map names to values",
  ),
  rejectsAssociation(
    "an installation of number 0",
    { github: { appInstallations: { 1: { installations: [{ installationId: "0" }] } } } },
    "github",
    "github.appInstallations must have positive installation ids",
  ),
  ...["0x1", " 1", "+1"].map((app): Rule => {
    const field = `github.appInstallations.${app}`;
    const rule = "has a key that must be an integer between -9223372036854775808 and 9223372036854775807";
    return {
      anchor: "account-associations",
      says: `an association with the app ${JSON.stringify(app)} is rejected`,
      http: "POST /iam/v2beta1/accountAssociations/<fresh>",
      body: { name: "a", github: { appInstallations: { [app]: {} } } },
      expect: invalid([field, `${field} ${rule}`]),
    };
  }),
  {
    anchor: "account-associations",
    says: "an association may name an account that others name too",
    steps: ["<fresh>", "<freshOther>"].map((parent) => ({
      call: "CreateAccountAssociation",
      request: { parent, accountAssociation: { name: "a", amazon } },
      expect: { result: { amazon } },
    })),
  },
  updatesAssociation(
    "the keys present",
    "",
    { description: "" },
    { name: "accounts", description: "", amazon, google, azure: absent },
  ),
  updatesAssociation(
    "one account more",
    "",
    { azure: { tenantId: "t" } },
    { amazon, google, azure: { tenantId: "t", clientIds: {} } },
  ),
  updatesAssociation("one account less", "?updateMask=amazon", {}, { amazon: absent, google }),
  updatesAssociation(
    "a part of an account",
    "?updateMask=google.projectId",
    { google: { projectId: "q" } },
    { google: { projectId: "q", projectNumber: "any text" } },
  ),
  updatesAssociation(
    "everything",
    "?updateMask=*",
    { name: "n" },
    { name: "n", description: "", amazon: absent, google: absent },
  ),
];

/** Invites. */
export const invites: readonly Rule[] = [
  {
    anchor: "invites",
    says: "the code is in the answer to the creation alone",
    steps: [
      createsInvite,
      { call: "GetGroupInvite", request: { uid: "<made>" }, expect: { result: { code: "", keyId: /./ } } },
      {
        call: "ListGroupInvites",
        request: { uidp: { descendantsOf: "<fresh>" } },
        expect: { result: { groupInvites: [{ uid: "<made>", code: "" }] } },
      },
    ],
  },
  rejectsInvite("no role", { roleUid: "" }, "roleUid", "roleUid is required"),
  rejectsInvite(
    "what is no role",
    { roleUid: "viewer" },
    "roleUid",
    "roleUid must be a built-in role or one of the group or above it",
  ),
  rejectsInvite("no ttl", { ttl: null }, "ttl", "ttl is required"),
  ...["0s", "-1s", "31536001s", "0.0001s"].map((ttl) =>
    rejectsInvite(`a ttl of ${ttl}`, { ttl }, "ttl", "ttl must be more than 0 and at most 365 days"),
  ),
  ...["x", "a b@c", "a@b@c", "@b", "a@"].map((email) =>
    rejectsInvite(`the address ${email}`, { email }, "email", "email must be an e-mail address"),
  ),
  {
    anchor: "invites",
    says: "an update changes address, use and ttl",
    steps: [
      createsInvite,
      updatesInvite({ email: "a@b.example" }, "email", { result: { email: "a@b.example", singleUse: false } }),
      updatesInvite({ email: "c@d.example", singleUse: true }, "singleUse", {
        result: { email: "a@b.example", singleUse: true },
      }),
      updatesInvite({ ttl: "36000s", roleUid: "<viewerRole>" }, "ttl,roleUid", {
        result: { singleUse: true, role: { uid: "<viewerRole>" } },
      }),
      updatesInvite({ email: "", roleUid: "<editorRole>" }, "email", { result: { email: "" } }),
      updatesInvite({ email: "x@y.example" }, "*", invalid(["ttl", "ttl is required"])),
    ],
  },
  {
    anchor: "invites",
    says: "no update changes the role",
    steps: [
      createsInvite,
      ...["roleUid", "*"].map((mask) =>
        updatesInvite(
          { ttl: "36000s", roleUid: "<editorRole>" },
          mask,
          invalid([/^role(Uid|_uid)$/, /^role(Uid|_uid) cannot change: create another invite$/]),
        ),
      ),
    ],
  },
  {
    anchor: "invites",
    says: "invites are listed newest first, and found by their key",
    steps: [
      createsInvite,
      { ...createsInvite, laterMs: 1_000, keep: { second: "uid", key: "keyId" } },
      listsInvites({}, ["<second>", "<made>"]),
      listsInvites({ orderBy: "created_at" }, ["<made>", "<second>"]),
      listsInvites({ keyId: "<key>" }, ["<second>"]),
      listsInvites({ keyId: "nonsense" }, []),
      { call: "ListGroupInvites", request: { orderBy: "email" }, expect: { code: "INVALID_ARGUMENT" } },
    ],
  },
  {
    anchor: "invites",
    says: "who presents the code gets the role",
    shownBy: "test/issuer/auth-v1-invites.test.ts",
    test: "registers the bearer of its code with its role",
  },
  {
    anchor: "invites",
    says: "an invite for a single use lets in one",
    shownBy: "test/issuer/auth-v1-invites.test.ts",
    test: "for a single use registers one person",
  },
  {
    anchor: "invites",
    says: "an invite ends when its creator loses what it grants",
    shownBy: "test/issuer/auth-v1-invites.test.ts",
    test: "must still hold the rights that the invite grants",
  },
];
