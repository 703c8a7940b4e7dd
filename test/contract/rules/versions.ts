// What docs/api-rules.md says about version 1 and terms.
import { absent, each, type Rule } from "./rule.js";

// The paths that version 1 spells in another way.
const spellings: Readonly<Record<string, string>> = {
  rolebindings: "roleBindings",
  group_invites: "groupInvites",
  account_associations: "accountAssociations",
};

/** Version 1 and terms. */
export const versions: readonly Rule[] = [
  {
    anchor: "version-1",
    says: "a list of version 1 is items, with id, createdAt and updatedAt, and without pages",
    http: "GET /iam/v1/groups?uidp.childrenOf=<hall>",
    expect: {
      json: {
        items: each({ id: /^<hall>\//, createdAt: /Z$/, updatedAt: /Z$/, uid: absent, createTime: absent }, 205),
        groups: absent,
        nextPageToken: absent,
        totalCount: absent,
        skipped: absent,
      },
    },
  },
  {
    anchor: "version-1",
    says: "a list of version 1 is in the order of ids",
    call: "iam.Groups.List",
    request: { uidp: { descendantsOf: "<shelf>" } },
    expect: { result: { items: ["atlas", "birch", "twig", "cedar"].map((name) => ({ id: `<${name}>` })) } },
  },
  {
    anchor: "version-1",
    says: "the repos of version 1 are at their path",
    http: "GET /registry/v1/repos?uidp.childrenOf=<full>",
    expect: { json: { items: [{ id: "<repo>", name: "one" }] } },
  },
  {
    anchor: "version-1",
    says: "there is no Get: a list has a filter id",
    call: "iam.Groups.List",
    request: { id: "<atlas>" },
    expect: { result: { items: [{ id: "<atlas>", name: "atlas" }] } },
  },
  ...["", "/"].map(
    (parent): Rule => ({
      anchor: "version-1",
      says: `a group whose parent is "${parent}" is a root group`,
      call: "iam.Groups.Create",
      as: "person",
      over: ["gRPC", "Connect"],
      request: { parent, group: { name: "mine" } },
      expect: { result: { id: /^[0-9a-f]{40}$/, name: "mine" } },
    }),
  ),
  {
    anchor: "version-1",
    says: "a list with an id that does not exist is empty",
    call: "iam.Groups.List",
    request: { id: "<ghost>" },
    expect: { result: { items: [] } },
  },
  {
    anchor: "version-1",
    says: "an update resets what the request lacks",
    call: "iam.Groups.Update",
    request: { id: "<fresh>", name: "after" },
    expect: { result: { id: "<fresh>", name: "after", description: "" } },
  },
  {
    anchor: "version-1",
    says: "fields that only version 2 has stay",
    shownBy: "test/iam/v1/groups-v1.test.ts",
    test: "lose the fields that an update omits in version 1, and keep them in version 2",
  },
  {
    anchor: "version-1",
    says: "over REST an update is a PUT of the whole resource",
    http: "PUT /iam/v1/groups/<fresh>",
    body: { name: "after" },
    expect: { json: { id: "<fresh>", name: "after", description: "" } },
  },
  {
    anchor: "version-1",
    says: "a caller moves by replacing the prefix: groups, identities and roles are at the same paths",
    steps: ["groups", "identities", "roles"].flatMap((path) =>
      ["v1", "v2beta1", "v2"].map((version) => ({ http: `GET /iam/${version}/${path}`, expect: {} })),
    ),
  },
  ...Object.entries(spellings).map(
    ([old, key]): Rule => ({
      anchor: "version-1",
      says: `${old}, as version 1 spells it, is a path of the other versions too`,
      steps: [
        { http: `GET /iam/v1/${old}`, expect: { json: { items: each({ id: /./ }) } } },
        ...["v2beta1", "v2"].map((version) => ({
          http: `GET /iam/${version}/${old}`,
          expect: { json: { [key]: each({ uid: /./ }), totalCount: /./ } },
        })),
      ],
    }),
  ),
  {
    anchor: "version-1",
    says: "a value that would not be stored is refused in version 1 where it is not zero",
    call: "iam.Groups.Update",
    request: { id: "<fresh>", name: "before", verified: true },
    expect: { code: "PERMISSION_DENIED", message: /verified is set by the operator/ },
  },
  {
    anchor: "terms",
    says: "terms that an ancestor has accepted count",
    steps: [
      { call: "AcceptTerms", request: { group: "<fresh>", documentIds: ["eula"] }, expect: {} },
      {
        call: "ListTermsAcceptances",
        made: ["<freshChild>"],
        request: { group: "<freshChild>" },
        expect: { result: { termsAcceptances: [{ docId: "eula" }] } },
      },
    ],
  },
  {
    anchor: "version-1",
    says: "every method of version 1 has its counterpart in the guide",
    shownBy: "test/contract/migration-doc.test.ts",
    test: "has every method of version 1 somewhere",
  },
];
