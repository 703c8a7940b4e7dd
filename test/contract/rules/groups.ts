// What docs/api-rules.md says about groups and their deletion.
import { absent, denial, type Expectation, notFound, precondition, type Rule, type Step } from "./rule.js";

const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{3})?Z$/;

const createNamed = (name: string): Step => ({
  call: "CreateGroup",
  request: { parent: "<fresh>", group: { name } },
  expect: { result: { name } },
});

const ownerRequired = precondition("OWNER_REQUIRED", "a root group must keep an owner");
const deletesOwner = (expect: Expectation): Step => ({
  ...{ call: "DeleteRoleBinding", as: "freshOwner", request: { uid: "<freshOwnerBinding>" }, expect },
});
const updatesOwner = (roleBinding: object, expect: Expectation): Step => ({
  call: "UpdateRoleBinding",
  as: "freshOwner",
  request: { roleBinding: { uid: "<freshOwnerBinding>", ...roleBinding }, updateMask: Object.keys(roleBinding).join() },
  expect,
});
const bindsOwner = (parent: string, identityUid: string): Step => ({
  call: "CreateRoleBinding",
  as: "freshOwner",
  request: { parent, roleBinding: { identityUid, roleUid: "<ownerRole>" } },
  expect: {},
});
const renames = {
  as: "freshOwner",
  expect: precondition("GROUP_VERIFIED", "cannot rename a verified group"),
} as const;
const readsVerified = {
  call: "GetGroup",
  as: "freshOwner",
  request: { uid: "<freshVerified>" },
  expect: {},
  keep: { name: "name" },
} as const;

/** Groups. */
const groupRules: readonly Rule[] = [
  {
    anchor: "groups",
    says: "a new group has a uid, its times, empty limits, and is not verified",
    call: "CreateGroup",
    request: { parent: "<fresh>", group: { name: "core", description: "Kern – ü" } },
    expect: {
      result: {
        uid: /^<fresh>\/[0-9a-f]{16}$/,
        name: "core",
        description: "Kern – ü",
        resourceLimits: {},
        verified: false,
        createTime: TIME,
        updateTime: TIME,
      },
      json: { resourceLimits: {}, verified: false, kind: absent, status: absent },
    },
  },
  {
    anchor: "groups",
    says: "a description is optional",
    call: "CreateGroup",
    request: { parent: "<fresh>", group: { name: "core" } },
    expect: { result: { name: "core", description: "" } },
  },
  {
    anchor: "groups",
    says: "several groups may have one name",
    steps: [createNamed("twice"), createNamed("twice")],
  },
  {
    anchor: "groups",
    says: "who creates a root group owns it",
    over: ["gRPC", "Connect"],
    steps: [
      {
        call: "CreateGroup",
        as: "person",
        request: { group: { name: "mine" } },
        expect: { result: { uid: /^[0-9a-f]{40}$/, name: "mine" } },
        keep: { made: "uid" },
      },
      { call: "CreateGroup", as: "person", request: { parent: "<made>", group: { name: "child" } }, expect: {} },
    ],
  },
  {
    anchor: "groups",
    says: "--root-creation decides who may create one",
    shownBy: "test/contract/groups-access.test.ts",
    test: "is for *",
  },
  {
    anchor: "groups",
    says: "POST on the collection with a slash at its end creates a root group",
    http: "POST /iam/v2beta1/groups/",
    as: "person",
    body: { name: "mine" },
    expect: { json: { uid: /^[0-9a-f]{40}$/, name: "mine" } },
  },
  {
    anchor: "groups",
    says: "a workload creates no root group, and the refusal does not speak of what might not exist",
    call: "CreateGroup",
    as: "ciIdentity",
    over: ["gRPC", "Connect"],
    request: { group: { name: "mine" } },
    expect: { code: "PERMISSION_DENIED", message: /^Permission denied: (?!.*might not exist).*people/ },
  },
  {
    anchor: "groups",
    says: "a group is created in no group that does not exist",
    call: "CreateGroup",
    request: { parent: "<ghost>", group: { name: "core" } },
    expect: notFound("iam.chainguard.dev/Group", "<ghost>"),
  },
  {
    anchor: "groups",
    says: "a group is created in no group of others",
    call: "CreateGroup",
    request: { parent: "<foreign>", group: { name: "core" } },
    expect: denial("groups.create at <foreign>"),
  },
  ...["v1", "v2beta1", "v2"].map((version): Rule => {
    const path = `/iam/${version}/groups/`;
    const refused = {
      code: "NOT_FOUND",
      message: `Not found: path: no such path ${path}, did you mean ${path.slice(0, -1)}?`,
    };
    return {
      anchor: "groups",
      says: `the path of a root group's creation is for that alone, in ${version}`,
      steps: [
        ...["GET", "PATCH", "PUT", "DELETE"].map((method) => ({ http: `${method} ${path}`, expect: refused })),
        ...["identities", "roles", "terms", "identityProviders"].map((kind) => ({
          http: `POST /iam/${version}/${kind}/`,
          body: { name: "a" },
          expect: { code: "NOT_FOUND" },
        })),
        { http: `POST /iam/${version}/groups`, body: { name: "a" }, expect: { code: "UNIMPLEMENTED", status: 405 } },
        { http: `OPTIONS ${path}`, expect: { status: 204, headers: { allow: "OPTIONS, POST" } } },
      ],
    };
  }),
  {
    anchor: "groups",
    says: "that path says that the parent is empty, so nothing else may",
    http: "POST /iam/v2beta1/groups/?parent=<org>",
    body: { name: "a" },
    expect: { code: "INVALID_ARGUMENT", message: /^Invalid argument: parent/ },
  },
  {
    anchor: "groups",
    says: "a root group keeps an owner, whose binding is neither deleted nor given away",
    steps: [
      ...Object.entries({ DeleteRoleBinding: "uid", "iam.RoleBindings.Delete": "id" }).map(([call, field]) => ({
        call,
        as: "freshOwner" as const,
        request: { [field]: "<freshOwnerBinding>" },
        expect: ownerRequired,
      })),
      updatesOwner({ roleUid: "<viewerRole>" }, ownerRequired),
      updatesOwner({ identityUid: "<unknownPerson>" }, ownerRequired),
    ],
  },
  {
    anchor: "groups",
    says: "an owner who never came, or of a group within, is not an owner of the root",
    steps: [
      bindsOwner("<freshRoot>", "<unknownPerson>"),
      deletesOwner(ownerRequired),
      {
        call: "CreateGroup",
        as: "freshOwner",
        request: { parent: "<freshRoot>", group: { name: "child" } },
        expect: {},
        keep: { child: "uid" },
      },
      bindsOwner("<child>", "<freshPerson>"),
      deletesOwner(ownerRequired),
      bindsOwner("<freshRoot>", "<freshPerson>"),
      deletesOwner({}),
    ],
  },
  {
    anchor: "groups",
    says: "the last owner is not deleted",
    steps: [
      {
        call: "DeleteIdentity",
        as: "freshOwnerWorkload",
        request: { uid: "<freshOwnerWorkload>" },
        expect: ownerRequired,
      },
      {
        call: "GetIdentity",
        as: "freshOwnerWorkload",
        request: { uid: "<freshOwnerWorkload>" },
        expect: { result: { uid: "<freshOwnerWorkload>" } },
      },
    ],
  },
  {
    anchor: "groups",
    says: "who owns a root group after its founder deletes it",
    steps: [
      bindsOwner("<freshRoot>", "<freshPerson>"),
      { call: "DeleteRoleBinding", as: "freshPerson", request: { uid: "<freshOwnerBinding>" }, expect: {} },
      { call: "DeleteGroup", as: "freshPerson", request: { uid: "<freshRoot>" }, expect: { text: "" } },
      { call: "ListGroups", as: "freshPerson", request: {}, expect: { result: { groups: [] } } },
    ],
  },
  {
    anchor: "fixed-fields",
    says: "a value for verified that would not be stored is refused where it is named",
    http: "PATCH /iam/v2beta1/groups/<fresh>?updateMask=verified",
    body: { verified: true },
    expect: { code: "PERMISSION_DENIED", message: /verified is set by the operator/ },
  },
  {
    anchor: "fixed-fields",
    says: "a value for kind that would not be stored is refused where it is named",
    call: "UpdateGroup",
    request: { group: { uid: "<fresh>", kind: "ORG_KIND_CUSTOMER" }, updateMask: "kind" },
    expect: { code: "PERMISSION_DENIED", message: /kind is set by the operator/ },
  },
  {
    anchor: "fixed-fields",
    says: "the value that is stored may be sent",
    call: "UpdateGroup",
    request: { group: { uid: "<fresh>", verified: false, name: "after" }, updateMask: "verified,name" },
    expect: { result: { name: "after", verified: false } },
  },
  {
    anchor: "fixed-fields",
    says: "a create may name a fixed field with the value that would be stored, and with no other",
    http: "POST /iam/v2beta1/groups/<org>",
    body: { name: "fixed", verified: true },
    expect: { code: "PERMISSION_DENIED", message: /verified is set by the operator/ },
  },
  {
    anchor: "fixed-fields",
    says: "all that would not be stored is named",
    call: "CreateGroup",
    request: { parent: "<fresh>", group: { name: "core", verified: true, kind: "ORG_KIND_CUSTOMER" } },
    expect: {
      code: "PERMISSION_DENIED",
      message: /verified is set by the operator.*; kind: kind is set by the operator/,
    },
  },
  {
    anchor: "fixed-fields",
    says: "fields outside the mask are ignored",
    call: "UpdateGroup",
    request: { group: { uid: "<fresh>", verified: true, kind: "ORG_KIND_CUSTOMER" }, updateMask: "uid" },
    expect: { result: { name: "before", verified: false } },
  },
  {
    anchor: "groups",
    says: "a verified group keeps its name",
    steps: [
      { http: "PATCH /iam/v2beta1/groups/<freshVerified>", ...renames, body: { name: "other.example" } },
      {
        http: "PATCH /iam/v2beta1/groups/<freshVerified>?updateMask=name",
        ...renames,
        body: { name: "other.example" },
      },
      {
        http: "PATCH /iam/v2beta1/groups/<freshVerified>?updateMask=*",
        ...renames,
        body: { name: "other.example", verified: false },
      },
    ],
  },
  {
    anchor: "fixed-fields",
    says: "an update of a verified group may name what it is, and nothing else",
    steps: [
      readsVerified,
      ...[
        ["", { verified: false, kind: "ORG_KIND_UNSPECIFIED" }, /verified is set by .*; kind: kind is set by /],
        ["?updateMask=verified,kind", { verified: false }, /verified is set by .*; kind: kind is set by /],
        ["?updateMask=*", { name: "<name>", verified: true, kind: "ORG_KIND_DEV" }, /: kind: kind is set by /],
        ["", { name: "<name>", verified: true, kind: "ORG_KIND_CUSTOMER" }],
        ["?updateMask=verified,kind", { verified: true, kind: "ORG_KIND_CUSTOMER" }],
        ["?updateMask=*", { name: "<name>", description: "ours" }],
      ].map(([query, body, message]) => ({
        http: `PATCH /iam/v2beta1/groups/<freshVerified>${query}`,
        as: "freshOwner" as const,
        body: body as object,
        expect: message === undefined ? {} : { code: "PERMISSION_DENIED", message: message as RegExp },
      })),
      {
        ...readsVerified,
        expect: { result: { name: "<name>", description: "ours", verified: true, kind: "ORG_KIND_CUSTOMER" } },
      },
    ],
  },
];

// What keeps `<fresh>` from being deleted, by the words of the error.
const guards: Readonly<Record<string, string>> = {
  repos: "<freshRepo>",
  advisories: "<freshAdvisory>",
  groups: "<freshChild>",
  identities: "<freshIdentity>",
  roles: "<freshRole>",
  "role bindings": "<freshForeignBinding>",
  "group invites": "<freshInvite>",
  subscriptions: "<freshSubscription>",
};

const notEmpty = (children: string, ...others: readonly string[]) => {
  const rule = (kind: string) => `cannot delete group with child ${kind}`;
  return precondition("RESOURCE_NOT_EMPTY", rule(children), ...others.map(rule));
};
const deletesFresh = (...calls: readonly Step[]): readonly Step[] => [
  ...calls,
  { call: "DeleteGroup", request: { uid: "<fresh>" }, expect: { text: "" } },
  { call: "GetGroup", request: { uid: "<fresh>" }, expect: notFound("iam.chainguard.dev/Group", "<fresh>") },
];
const nothing = "<fresh>/0123456789abcdef";
// A step that needs nothing but what it names to be there.
const requireGiven = (...made: readonly string[]): Step => ({
  call: "GetGroup",
  request: { uid: "<fresh>" },
  made,
  expect: { result: { uid: "<fresh>" } },
});

// What is in the way besides repos and advisories, in the order of the error.
const restricting = ["groups", "identities", "roles", "group invites"];

/** Deletion. */
const deletion: readonly Rule[] = [
  ...Object.entries(guards).map(
    ([children, placeholder]): Rule => ({
      anchor: "deletion",
      says: `a group with ${children} is not deleted`,
      steps: [
        requireGiven(placeholder),
        { call: "DeleteGroup", request: { uid: "<fresh>" }, expect: notEmpty(children) },
        { call: "iam.Groups.Delete", request: { id: "<fresh>" }, expect: notEmpty(children) },
        { call: "GetGroup", request: { uid: "<fresh>" }, expect: { result: { uid: "<fresh>" } } },
      ],
    }),
  ),
  {
    anchor: "deletion",
    says: "a group with identity providers is not deleted",
    steps: [
      {
        call: "CreateIdentityProvider",
        as: "freshOwner",
        request: {
          parent: "<freshRoot>",
          identityProvider: {
            name: "p",
            defaultRole: "<viewerRole>",
            oidc: { issuer: "https://login.example", clientId: "id", clientSecret: "s" },
          },
        },
        expect: {},
      },
      {
        call: "DeleteGroup",
        as: "freshOwner",
        request: { uid: "<freshRoot>" },
        expect: notEmpty("identity providers"),
      },
    ],
  },
  {
    anchor: "deletion",
    says: "a group with account associations is not deleted",
    steps: [
      {
        call: "CreateAccountAssociation",
        request: { parent: "<fresh>", accountAssociation: { name: "a" } },
        expect: {},
      },
      { call: "DeleteGroup", request: { uid: "<fresh>" }, expect: notEmpty("account associations") },
    ],
  },
  {
    anchor: "deletion",
    says: "of several kinds of children the text names the first, repos before all others, and violations name all",
    steps: [
      requireGiven("<freshRepo>", "<freshAdvisory>", "<freshChild>", "<freshIdentity>", "<freshRole>", "<freshInvite>"),
      { call: "DeleteGroup", request: { uid: "<fresh>" }, expect: notEmpty("repos", "advisories", ...restricting) },
      { call: "DeleteRepo", request: { uid: "<freshRepo>" }, expect: {} },
      { call: "DeleteGroup", request: { uid: "<fresh>" }, expect: notEmpty("advisories", ...restricting) },
    ],
  },
  {
    anchor: "deletion",
    says: "then groups, identities, roles, role bindings and invites, and without them the group goes",
    steps: deletesFresh(
      requireGiven("<freshChild>", "<freshIdentity>", "<freshRole>", "<freshForeignBinding>", "<freshInvite>"),
      {
        call: "DeleteGroup",
        request: { uid: "<fresh>" },
        expect: notEmpty("groups", "identities", "roles", "role bindings", "group invites"),
      },
      { call: "DeleteGroup", request: { uid: "<freshChild>" }, expect: {} },
      {
        call: "DeleteGroup",
        request: { uid: "<fresh>" },
        expect: notEmpty("identities", "roles", "role bindings", "group invites"),
      },
      { call: "DeleteIdentity", request: { uid: "<freshIdentity>" }, expect: {} },
      { call: "DeleteGroup", request: { uid: "<fresh>" }, expect: notEmpty("roles", "role bindings", "group invites") },
      { call: "DeleteRole", request: { uid: "<freshRole>" }, expect: {} },
      { call: "DeleteGroup", request: { uid: "<fresh>" }, expect: notEmpty("role bindings", "group invites") },
      { call: "DeleteRoleBinding", request: { uid: "<freshForeignBinding>" }, expect: {} },
      { call: "DeleteGroup", request: { uid: "<fresh>" }, expect: notEmpty("group invites") },
      { call: "DeleteGroupInvite", request: { uid: "<freshInvite>" }, expect: {} },
    ),
  },
  {
    anchor: "deletion",
    says: "account associations are named after all others",
    steps: [
      requireGiven("<freshInvite>"),
      {
        call: "CreateAccountAssociation",
        request: { parent: "<fresh>", accountAssociation: { name: "a" } },
        expect: {},
      },
      { call: "DeleteGroup", request: { uid: "<fresh>" }, expect: notEmpty("group invites", "account associations") },
      { call: "DeleteGroupInvite", request: { uid: "<freshInvite>" }, expect: {} },
      { call: "DeleteGroup", request: { uid: "<fresh>" }, expect: notEmpty("account associations") },
    ],
  },
  {
    anchor: "deletion",
    says: "advisories do not count when all are withdrawn, and are deleted with their group",
    steps: deletesFresh({
      call: "vulnerabilities.v1.Advisories.Delete",
      as: "admin",
      request: { id: "<freshAdvisory>" },
      expect: {},
    }),
  },
  {
    anchor: "deletion",
    says: "expired invites do not count and are deleted with their group",
    steps: deletesFresh(requireGiven("<freshExpiredInvite>")),
  },
  {
    anchor: "deletion",
    says: "accepted terms do not count",
    steps: deletesFresh({
      call: "AcceptTerms",
      request: { group: "<fresh>", documentIds: ["eula"] },
      expect: {},
    }),
  },
  {
    anchor: "deletion",
    says: "subscriptions are named last, and without them the group goes",
    steps: deletesFresh(
      requireGiven("<freshSubscription>"),
      {
        call: "CreateAccountAssociation",
        request: { parent: "<fresh>", accountAssociation: { name: "a" } },
        expect: {},
      },
      { call: "DeleteGroup", request: { uid: "<fresh>" }, expect: notEmpty("account associations", "subscriptions") },
      { call: "DeleteAccountAssociation", request: { uid: "<fresh>" }, expect: {} },
      { call: "DeleteGroup", request: { uid: "<fresh>" }, expect: notEmpty("subscriptions") },
      { call: "DeleteSubscription", request: { uid: "<freshSubscription>" }, expect: {} },
    ),
  },
  {
    anchor: "deletion",
    says: "an empty root group is deleted with the binding of its owner",
    call: "DeleteGroup",
    as: "freshOwner",
    request: { uid: "<freshRoot>" },
    expect: { text: "" },
  },
  {
    anchor: "deletion",
    says: "the binding, then the identity, then the group: in this order all go",
    steps: deletesFresh(
      { call: "DeleteRoleBinding", request: { uid: "<freshBinding>" }, expect: { text: "" } },
      { call: "DeleteIdentity", request: { uid: "<freshIdentity>" }, expect: { text: "" } },
    ),
  },
  {
    anchor: "deletion",
    says: "an identity is deleted with its role bindings",
    steps: deletesFresh(requireGiven("<freshBinding>"), {
      call: "DeleteIdentity",
      request: { uid: "<freshIdentity>" },
      expect: {},
    }),
  },
  {
    anchor: "deletion",
    says: "a repo is deleted with its tags",
    steps: [
      requireGiven("<freshTag>"),
      { call: "DeleteRepo", request: { uid: "<freshRepo>" }, expect: { text: "" } },
      { call: "GetTag", request: { uid: "<freshTag>" }, expect: { code: "NOT_FOUND" } },
    ],
  },
  {
    anchor: "deletion",
    says: "a role that is bound is not deleted",
    call: "DeleteRole",
    request: { uid: "<role>" },
    expect: precondition("RESOURCE_IN_USE", "cannot delete role that is in use"),
  },
  ...Object.entries({
    Group: "iam.Groups.Delete",
    Identity: "iam.Identities.Delete",
    Role: "iam.Roles.Delete",
    IdentityProvider: "iam.IdentityProviders.Delete",
    Repo: "registry.Registry.DeleteRepo",
  }).map(([name, v1]): Rule => {
    const expect = { code: "NOT_FOUND", details: [{ resourceType: /./, resourceName: nothing }] };
    return {
      anchor: "deletion",
      says: `Delete${name} of what does not exist is NOT_FOUND`,
      steps: [
        { call: `Delete${name}`, request: { uid: nothing }, expect },
        { call: v1, request: { id: nothing }, expect },
      ],
    };
  }),
  ...Object.entries({
    RoleBinding: ["iam.RoleBindings.Delete", "id"],
    AccountAssociation: ["iam.GroupAccountAssociations.Delete", "group"],
    GroupInvite: ["iam.GroupInvites.Delete", "id"],
  } as const).map(
    ([name, [v1, field]]): Rule => ({
      anchor: "deletion",
      says: `Delete${name} of what does not exist succeeds`,
      steps: [
        { call: `Delete${name}`, request: { uid: nothing }, expect: { text: "" } },
        { call: v1, request: { [field]: nothing }, expect: { text: "" } },
      ],
    }),
  ),
];

/** Groups and their deletion. */
export const groups: readonly Rule[] = [...groupRules, ...deletion];
