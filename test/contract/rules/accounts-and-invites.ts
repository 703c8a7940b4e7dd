// What docs/api-rules.md says about account associations and invites.
import { alreadyExists, invalid, type Rule, type Step } from "./rule.js";

const createsInvite: Step = {
  call: "CreateGroupInvite",
  request: { parent: "<fresh>", groupInvite: { roleUid: "<viewerRole>", ttl: "3600s" } },
  expect: { result: { code: /./, keyId: /./, role: { uid: "<viewerRole>" }, expirationTime: /Z$/ } },
  keep: { made: "uid", code: "code" },
};

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
  {
    anchor: "invites",
    says: "a ttl is required",
    call: "CreateGroupInvite",
    request: { parent: "<fresh>", groupInvite: { roleUid: "<viewerRole>" } },
    expect: invalid(["ttl", /./]),
  },
  {
    anchor: "invites",
    says: "a ttl is at most 365 days",
    call: "CreateGroupInvite",
    request: { parent: "<fresh>", groupInvite: { roleUid: "<viewerRole>", ttl: "31536001s" } },
    expect: invalid(["ttl", /365/]),
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
