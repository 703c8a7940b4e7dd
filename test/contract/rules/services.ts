// What docs/api-rules.md says about services: every kind of resource with its methods and paths.
import { each, notFound, type Pattern, type Rule, type Step } from "./rule.js";

interface Kind {
  /** In the names of methods: `Get` and this, `List` and its plural. */
  readonly name: string;
  readonly plural: string;
  /** The key of lists, which is the last part of the path too. */
  readonly key: string;
  readonly prefix: string;
  /** One that is there, and one that is not. */
  readonly uid: string;
}

const iam = "/iam/v2beta1";
const kinds: readonly Kind[] = [
  { name: "Group", plural: "Groups", key: "groups", prefix: iam, uid: "<full>" },
  { name: "Identity", plural: "Identities", key: "identities", prefix: iam, uid: "<identity>" },
  { name: "Role", plural: "Roles", key: "roles", prefix: iam, uid: "<role>" },
  { name: "RoleBinding", plural: "RoleBindings", key: "roleBindings", prefix: iam, uid: "<roleBinding>" },
  {
    name: "IdentityProvider",
    plural: "IdentityProviders",
    key: "identityProviders",
    prefix: iam,
    uid: "<identityProvider>",
  },
  {
    name: "AccountAssociation",
    plural: "AccountAssociations",
    key: "accountAssociations",
    prefix: iam,
    uid: "<accountAssociation>",
  },
  { name: "GroupInvite", plural: "GroupInvites", key: "groupInvites", prefix: iam, uid: "<groupInvite>" },
  { name: "Repo", plural: "Repos", key: "repos", prefix: "/registry/v2beta1", uid: "<repo>" },
  { name: "Tag", plural: "Tags", key: "tags", prefix: "/registry/v2beta1", uid: "<tag>" },
  { name: "Overlay", plural: "Overlays", key: "overlays", prefix: "/registry/v2beta1", uid: "<overlay>" },
  {
    name: "OverlayBinding",
    plural: "OverlayBindings",
    key: "overlayBindings",
    prefix: "/registry/v2beta1",
    uid: "<overlayBinding>",
  },
  {
    name: "ExternalGroupRoleMapping",
    plural: "ExternalGroupRoleMappings",
    key: "externalGroupRoleMappings",
    prefix: iam,
    uid: "<externalGroupRoleMapping>",
  },
  {
    name: "Subscription",
    plural: "Subscriptions",
    key: "subscriptions",
    prefix: "/events/v2beta1",
    uid: "<subscription>",
  },
  { name: "Advisory", plural: "Advisories", key: "advisories", prefix: "/vulnerabilities/v2beta1", uid: "<advisory>" },
];

const reads = kinds.flatMap(({ name, plural, key, prefix, uid }): Rule[] => [
  {
    anchor: "services",
    says: `List${plural} returns a page of ${key}`,
    call: `List${plural}`,
    request: { uidp: { descendantsOf: "<org>" } },
    expect: { result: { [key]: each({ uid: /^<org>/ }), totalCount: /^[1-9]\d*$/ } },
  },
  {
    anchor: "services",
    says: `GET ${prefix}/${key} is that list`,
    http: `GET ${prefix}/${key}`,
    expect: { json: { [key]: each({ uid: /./ }), totalCount: /^[1-9]\d*$/, skipped: 0 } },
  },
  {
    anchor: "services",
    says: `Get${name} returns one by its uid`,
    call: `Get${name}`,
    request: { uid },
    expect: { result: { uid } },
  },
  {
    anchor: "services",
    says: `GET ${prefix}/${key}/{uid} is that one`,
    http: `GET ${prefix}/${key}/${uid}`,
    expect: { json: { uid } },
  },
  {
    anchor: "services",
    says: `${prefix.replace("v2beta1", "v2")}/${key} is the same under the stable name`,
    http: `GET ${prefix.replace("v2beta1", "v2")}/${key}/${uid}`,
    expect: { json: { uid } },
  },
]);

interface Life {
  readonly name: string;
  readonly parent: string;
  readonly fields: object;
  /** What the update changes, and where the response shows it. */
  readonly change: object;
  readonly changed: Pattern;
  readonly as?: Step["as"];
  /** The list of version 1, whose filter has the name of the field that names one. */
  readonly v1: readonly [list: string, filter: "id" | "group"];
  /** What a Get says when it is deleted. */
  readonly type?: string;
}

const lives: readonly Life[] = [
  {
    name: "Group",
    v1: ["iam.Groups.List", "id"],
    parent: "<fresh>",
    fields: { name: "g" },
    change: { description: "new" },
    changed: { name: "g", description: "new" },
  },
  {
    name: "Identity",
    v1: ["iam.Identities.List", "id"],
    parent: "<fresh>",
    fields: { name: "i", claimMatch: { issuer: "https://issuer.example", subject: "s" } },
    change: { description: "new" },
    changed: { name: "i", description: "new", claimMatch: { issuer: "https://issuer.example", subject: "s" } },
  },
  {
    name: "Role",
    v1: ["iam.Roles.List", "id"],
    parent: "<fresh>",
    fields: { name: "r", capabilities: ["CAP_IAM_GROUPS_LIST"] },
    change: { capabilities: ["CAP_IAM_ROLES_LIST"] },
    changed: { name: "r", capabilities: ["CAP_IAM_ROLES_LIST"] },
  },
  {
    name: "RoleBinding",
    v1: ["iam.RoleBindings.List", "id"],
    parent: "<fresh>",
    fields: { identityUid: "<freshIdentity>", roleUid: "<viewerRole>" },
    change: { roleUid: "<editorRole>" },
    changed: { identity: { uid: "<freshIdentity>" }, role: { uid: "<editorRole>", name: "editor" } },
  },
  {
    name: "IdentityProvider",
    v1: ["iam.IdentityProviders.List", "id"],
    parent: "<freshRoot>",
    fields: {
      name: "p",
      defaultRole: "<viewerRole>",
      oidc: { issuer: "https://login.example", clientId: "id", clientSecret: "s" },
    },
    change: { description: "new" },
    changed: { name: "p", description: "new", oidc: { issuer: "https://login.example", clientSecret: "" } },
    as: "freshOwner",
  },
  {
    name: "AccountAssociation",
    v1: ["iam.GroupAccountAssociations.List", "group"],
    parent: "<fresh>",
    fields: { name: "a", amazon: { account: "123456789012" } },
    change: { description: "new" },
    changed: { uid: "<fresh>", name: "a", description: "new", amazon: { account: "123456789012" } },
  },
  {
    name: "GroupInvite",
    v1: ["iam.GroupInvites.List", "id"],
    parent: "<fresh>",
    fields: { roleUid: "<viewerRole>", ttl: "3600s" },
    change: { email: "ann@acme.example" },
    changed: { role: { uid: "<viewerRole>" }, email: "ann@acme.example" },
  },
  {
    name: "Repo",
    v1: ["registry.Registry.ListRepos", "id"],
    parent: "<fresh>",
    fields: { name: "r" },
    change: { description: "new" },
    changed: { name: "r", description: "new" },
  },
];

const writes = lives.map(({ name, parent, fields, change, changed, as = "owner", v1: [list, filter] }): Rule => {
  const field = name.charAt(0).toLowerCase() + name.slice(1);
  const update = (values: object): Step => ({
    call: `Update${name}`,
    as,
    request: { [field]: { uid: "<made>", ...values } },
    expect: { result: changed },
  });
  const inV1 = (...items: readonly Pattern[]): Step => ({
    call: list,
    as,
    request: { [filter]: "<made>" },
    expect: { result: { items } },
  });
  return {
    anchor: "services",
    says: `Create${name}, Update${name} and Delete${name} do so, one after another, in every version`,
    steps: [
      {
        call: `Create${name}`,
        as,
        request: { parent, [field]: fields },
        expect: { result: { uid: new RegExp(`^${parent}`) } },
        keep: { made: "uid" },
      },
      inV1({ [filter]: "<made>" }),
      update(change),
      { call: `Get${name}`, as, request: { uid: "<made>" }, expect: { result: changed } },
      { call: `Delete${name}`, as, request: { uid: "<made>" }, expect: { text: "" } },
      { call: `Get${name}`, as, request: { uid: "<made>" }, expect: notFound(/./, "<made>") },
      inV1(),
    ],
  };
});

/** Services. */
export const services: readonly Rule[] = [
  ...reads,
  ...writes,
  {
    anchor: "services",
    says: "what a request creates in one version is there in the others at once",
    steps: [
      {
        call: "CreateGroup",
        request: { parent: "<fresh>", group: { name: "everywhere" } },
        expect: {},
        keep: { made: "uid" },
      },
      {
        call: "iam.v2.GroupsService.GetGroup",
        request: { uid: "<made>" },
        expect: { result: { name: "everywhere" } },
      },
      {
        call: "iam.Groups.List",
        request: { id: "<made>" },
        expect: { result: { items: [{ id: "<made>", name: "everywhere" }] } },
      },
    ],
  },
  {
    anchor: "services",
    says: "gRPC and Connect are served at the address of REST",
    call: "ping.v2beta1.PingService.Ping",
    as: "anonymous",
    request: {},
    expect: {},
  },
  {
    anchor: "services",
    says: "no version other than those named is served",
    http: "GET /iam/v3/groups",
    expect: { code: "NOT_FOUND", message: /^Not found: path: / },
  },
];
