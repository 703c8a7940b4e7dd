// Calls of every method that changes something, in the order in which what they need is made, and what the audit log says
// of each.
import { builtinRoleUid } from "../../src/kernel/ids.js";

/** What earlier steps have made, by name. */
export type Made = Record<string, string>;

/** What a body says of a change. */
export type Shape = "created" | "updated" | "deleted" | "none";

/** A call. */
export interface Step {
  /** The service without its package prefix, and the method: `iam.v2.GroupsService/CreateGroup`. */
  readonly method: string;
  readonly request: (made: Made) => object;
  readonly shape: Shape;
  /** The message of the body, by its name without prefix. */
  readonly type?: string;
  /** The only fields of the body. */
  readonly only?: readonly string[];
  /** The name under which later steps find the uid of the response. */
  readonly keep?: string;
  /** Who calls: the owner of the organisation unless said otherwise. */
  readonly as?: "member";
}

const [viewer, editor] = [builtinRoleUid("viewer"), builtinRoleUid("editor")];
const claimMatch = { issuer: "https://issuer.example", subject: "s", audience: "a" };
const digests = ["a", "b"].map((digit) => `sha256:${digit.repeat(64)}`);

/** A secret that requests have, and that must be found nowhere. */
export const PLANTED = "planted-client-secret-7f3a";

const oidc = { issuer: "https://login.example", clientId: "id", clientSecret: PLANTED };

/** The calls of version 2, by its name: `v2` or `v2beta1`. */
export function listStepsV2(v: string): readonly Step[] {
  const step = (method: string, shape: Shape, type: string | undefined, request: Step["request"], more = {}): Step => ({
    ...{ method: method.replace(".V.", `.${v}.`), shape, request },
    ...(type !== undefined && { type: type.replace(".V.", `.${v}.`) }),
    ...more,
  });
  const groups = (name: string) => `iam.V.GroupsService/${name}`;
  const scimScope = (made: Made) => ({ identityProviderUid: made.provider });
  const mapping = (made: Made, externalGroupId: string) => ({
    parent: made.provider,
    externalGroupRoleMapping: { externalGroupId, roleUid: viewer, scope: made.org },
  });
  return [
    step(groups("CreateGroup"), "created", "iam.V.Group", ({ org }) => ({ parent: org, group: { name: "team" } }), {
      keep: "team",
    }),
    step(groups("UpdateGroup"), "updated", "iam.V.Group", ({ team }) => ({ group: { uid: team, description: "d" } })),
    step(groups("RequestGroupAccess"), "none", undefined, ({ org }) => ({ groupUid: org }), { as: "member" }),
    step(
      "iam.V.IdentitiesService/CreateIdentity",
      "created",
      "iam.V.Identity",
      ({ team }) => ({ parent: team, identity: { name: "bot", claimMatch } }),
      { keep: "bot" },
    ),
    step("iam.V.IdentitiesService/UpdateIdentity", "updated", "iam.V.Identity", ({ bot }) => ({
      identity: { uid: bot, description: "d" },
    })),
    step(
      "iam.V.IdentitiesService/UpdateIdentityMetadata",
      "none",
      undefined,
      () => ({ identityMetadata: { company: `Acme ${v}` } }),
      { as: "member" },
    ),
    step(
      "iam.V.RolesService/CreateRole",
      "created",
      "iam.V.Role",
      ({ team }) => ({ parent: team, role: { name: "reader", capabilities: ["CAP_IAM_GROUPS_LIST"] } }),
      { keep: "role" },
    ),
    step("iam.V.RolesService/UpdateRole", "updated", "iam.V.Role", ({ role }) => ({
      role: { uid: role, description: "d" },
    })),
    step(
      "iam.V.RoleBindingsService/CreateRoleBinding",
      "created",
      "iam.V.RoleBinding",
      ({ team, bot }) => ({ parent: team, roleBinding: { identityUid: bot, roleUid: viewer } }),
      { keep: "binding" },
    ),
    step("iam.V.RoleBindingsService/UpdateRoleBinding", "updated", "iam.V.RoleBinding", ({ binding }) => ({
      roleBinding: { uid: binding, roleUid: editor },
    })),
    step(
      "iam.V.RoleBindingsService/BatchCreateRoleBindings",
      "created",
      "iam.V.BatchCreateRoleBindingsResponse",
      ({ team, bot, role }) => ({
        parent: team,
        requests: [{ roleBinding: { identityUid: bot, roleUid: role } }],
      }),
      { keep: "second" },
    ),
    step(
      "iam.V.IdentityProvidersService/CreateIdentityProvider",
      "created",
      "iam.V.IdentityProvider",
      ({ org }) => ({ parent: org, identityProvider: { name: "login", defaultRole: viewer, oidc } }),
      { keep: "provider" },
    ),
    step("iam.V.IdentityProvidersService/UpdateIdentityProvider", "updated", "iam.V.IdentityProvider", (made) => ({
      identityProvider: { uid: made.provider, oidc: { ...oidc, clientId: "other" } },
      updateMask: "oidc",
    })),
    step("iam.V.IdentityProvidersService/SetScimEnabled", "created", "iam.V.SetScimEnabledResponse", (made) => ({
      ...scimScope(made),
      ...{ enabled: true, etag: "etag" },
    })),
    step(
      "iam.V.IdentityProvidersService/RegenerateScimToken",
      "created",
      "iam.V.RegenerateScimTokenResponse",
      (made) => ({
        ...scimScope(made),
        etag: "etag",
      }),
    ),
    step("iam.V.IdentityProvidersService/RevokeScimToken", "created", "iam.V.RevokeScimTokenResponse", scimScope),
    step("iam.V.IdentityProvidersService/GenerateScimToken", "created", "iam.V.GenerateScimTokenResponse", scimScope),
    step(
      "iam.V.ExternalGroupRoleMappingsService/CreateExternalGroupRoleMapping",
      "created",
      "iam.V.ExternalGroupRoleMapping",
      (made) => mapping(made, "one"),
      { keep: "mapping" },
    ),
    step(
      "iam.V.ExternalGroupRoleMappingsService/DeleteExternalGroupRoleMapping",
      "deleted",
      "iam.V.ExternalGroupRoleMapping",
      ({ mapping: uid }) => ({ uid }),
    ),
    step(
      "iam.V.ExternalGroupRoleMappingsService/CreateExternalGroupRoleMapping",
      "created",
      "iam.V.ExternalGroupRoleMapping",
      (made) => mapping(made, "two"),
      { keep: "mapping" },
    ),
    step(
      "iam.V.ExternalGroupRoleMappingsService/BatchDeleteExternalGroupRoleMappings",
      "deleted",
      "iam.V.BatchDeleteExternalGroupRoleMappingsResponse",
      ({ provider, mapping: uid }) => ({ parent: provider, names: [uid] }),
    ),
    step(
      "iam.V.IdentityProvidersService/DeleteIdentityProvider",
      "deleted",
      "iam.V.IdentityProvider",
      ({ provider }) => ({ uid: provider }),
    ),
    step(
      "iam.V.AccountAssociationsService/CreateAccountAssociation",
      "created",
      "iam.V.AccountAssociation",
      ({ team }) => ({ parent: team, accountAssociation: { name: "a", amazon: { account: "123456789012" } } }),
    ),
    step(
      "iam.V.AccountAssociationsService/UpdateAccountAssociation",
      "updated",
      "iam.V.AccountAssociation",
      ({ team }) => ({ accountAssociation: { uid: team, description: "d" } }),
    ),
    step("iam.V.AccountAssociationsService/DeleteAccountAssociation", "none", undefined, ({ team }) => ({ uid: team })),
    step(
      "iam.V.GroupInvitesService/CreateGroupInvite",
      "created",
      "iam.V.GroupInvite",
      ({ team }) => ({ parent: team, groupInvite: { roleUid: viewer, ttl: "60s", email: "x@acme.example" } }),
      { keep: "invite", only: ["uid", "expirationTime"] },
    ),
    step(
      "iam.V.GroupInvitesService/UpdateGroupInvite",
      "updated",
      "iam.V.GroupInvite",
      ({ invite }) => ({ groupInvite: { uid: invite, ttl: "90s" } }),
      { only: ["uid", "expirationTime"] },
    ),
    step(
      "iam.V.GroupInvitesService/DeleteGroupInvite",
      "deleted",
      "iam.V.GroupInvite",
      ({ invite }) => ({ uid: invite }),
      { only: ["uid", "expirationTime"] },
    ),
    step("iam.V.TermsService/AcceptTerms", "created", "iam.V.AcceptTermsResponse", ({ org }) => ({
      group: org,
      documentIds: [`doc ${v}`],
    })),
    step(
      "events.V.SubscriptionsService/CreateSubscription",
      "created",
      "events.V.Subscription",
      ({ team }) => ({ parent: team, subscription: { sink: "https://sink.example/" } }),
      { keep: "subscription" },
    ),
    step(
      "events.V.SubscriptionsService/DeleteSubscription",
      "deleted",
      "events.V.Subscription",
      ({ subscription }) => ({ uid: subscription }),
    ),
    step(
      "registry.V.ReposService/CreateRepo",
      "created",
      "registry.V.Repo",
      ({ team }) => ({ parent: team, repo: { name: "repo" } }),
      { keep: "repo" },
    ),
    step("registry.V.ReposService/UpdateRepo", "updated", "registry.V.Repo", ({ repo }) => ({
      repo: { uid: repo, description: "d" },
    })),
    step("registry.V.ReposService/UpdateRepoReadme", "updated", "registry.V.RepoReadme", ({ repo }) => ({
      repoReadme: { uid: repo, content: "# readme" },
    })),
    step(
      "registry.V.TagsService/CreateTag",
      "created",
      "registry.V.Tag",
      ({ repo }) => ({ parent: repo, tag: { name: "latest", digest: digests[0] } }),
      { keep: "tag" },
    ),
    // A tag that exists is moved.
    step("registry.V.TagsService/CreateTag", "updated", "registry.V.Tag", ({ repo }) => ({
      parent: repo,
      tag: { name: "latest", digest: digests[1] },
    })),
    step("registry.V.TagsService/DeleteTag", "deleted", "registry.V.Tag", ({ tag }) => ({ uid: tag })),
    step(
      "registry.V.OverlaysService/CreateOverlay",
      "created",
      "registry.V.Overlay",
      ({ team }) => ({ parent: team, overlay: { name: "tools", config: { contents: { packages: ["curl"] } } } }),
      { keep: "overlay" },
    ),
    step("registry.V.OverlaysService/UpdateOverlay", "updated", "registry.V.Overlay", ({ overlay }) => ({
      overlay: { uid: overlay, name: "more tools" },
    })),
    step(
      "registry.V.OverlayBindingsService/CreateOverlayBinding",
      "created",
      "registry.V.OverlayBinding",
      ({ repo, overlay }) => ({ parent: repo, overlay, tagSelector: { kind: "KIND_ALL" } }),
      { keep: "overlayBinding" },
    ),
    step(
      "registry.V.OverlayBindingsService/UpdateOverlayBinding",
      "updated",
      "registry.V.OverlayBinding",
      ({ overlayBinding }) => ({
        overlayBinding: { uid: overlayBinding, tagSelector: { kind: "KIND_EXACT", tags: ["latest"] } },
      }),
    ),
    step(
      "registry.V.OverlayBindingsService/DeleteOverlayBinding",
      "deleted",
      "registry.V.OverlayBinding",
      ({ overlayBinding }) => ({ uid: overlayBinding }),
    ),
    step("registry.V.OverlaysService/DeleteOverlay", "deleted", "registry.V.Overlay", ({ overlay }) => ({
      uid: overlay,
    })),
    step("registry.V.ReposService/DeleteRepo", "deleted", "registry.V.Repo", ({ repo }) => ({ uid: repo })),
    ...["binding", "second"].map((name) =>
      step("iam.V.RoleBindingsService/DeleteRoleBinding", "deleted", "iam.V.RoleBinding", (made) => ({
        uid: made[name],
      })),
    ),
    step("iam.V.RolesService/DeleteRole", "deleted", "iam.V.Role", ({ role }) => ({ uid: role })),
    step("iam.V.IdentitiesService/DeleteIdentity", "deleted", "iam.V.Identity", ({ bot }) => ({ uid: bot })),
    step(groups("DeleteGroup"), "deleted", "iam.V.Group", ({ team }) => ({ uid: team })),
  ];
}

/** The calls of version 1. */
export const stepsV1: readonly Step[] = [
  {
    method: "iam.Groups/Create",
    request: ({ org }) => ({ parent: org, group: { name: "team" } }),
    ...{ shape: "created", type: "iam.Group", keep: "team" },
  },
  {
    method: "iam.Groups/Update",
    request: ({ team }) => ({ id: team, name: "team", description: "d" }),
    ...{ shape: "updated", type: "iam.Group" },
  },
  { method: "iam.Groups/RequestGroupAccess", request: ({ org }) => ({ groupId: org }), shape: "none", as: "member" },
  {
    method: "iam.Identities/Create",
    request: ({ team }) => ({ parentId: team, identity: { name: "bot", claimMatch } }),
    ...{ shape: "created", type: "iam.Identity", keep: "bot" },
  },
  {
    method: "iam.Identities/Update",
    request: ({ bot }) => ({ id: bot, name: "bot", description: "d", claimMatch }),
    ...{ shape: "updated", type: "iam.Identity" },
  },
  {
    method: "events.Identities/UpdateMetadata",
    request: () => ({ updatesOptIn: true }),
    ...{ shape: "none", as: "member" },
  },
  {
    method: "iam.Roles/Create",
    request: ({ team }) => ({ parentId: team, role: { name: "reader", capabilities: ["groups.list"] } }),
    ...{ shape: "created", type: "iam.Role", keep: "role" },
  },
  {
    method: "iam.Roles/Update",
    request: ({ role }) => ({ id: role, name: "reader", description: "d", capabilities: ["groups.list"] }),
    ...{ shape: "updated", type: "iam.Role" },
  },
  {
    method: "iam.RoleBindings/Create",
    request: ({ team, bot }) => ({ parent: team, roleBinding: { identity: bot, role: viewer } }),
    ...{ shape: "created", type: "iam.RoleBinding", keep: "binding" },
  },
  {
    method: "iam.RoleBindings/Update",
    request: ({ binding, bot }) => ({ id: binding, identity: bot, role: editor }),
    ...{ shape: "updated", type: "iam.RoleBinding" },
  },
  {
    method: "iam.RoleBindings/CreateBatch",
    request: ({ team, bot, role }) => ({ parent: team, roleBindings: [{ identity: bot, role }] }),
    ...{ shape: "created", type: "iam.RoleBindingBatch", keep: "second" },
  },
  {
    method: "iam.IdentityProviders/Create",
    request: ({ org }) => ({ parentId: org, identityProvider: { name: "login", defaultRole: viewer, oidc } }),
    ...{ shape: "created", type: "iam.IdentityProvider", keep: "provider" },
  },
  {
    method: "iam.IdentityProviders/Update",
    request: ({ provider }) => ({ id: provider, name: "login", defaultRole: viewer, description: "d", oidc }),
    ...{ shape: "updated", type: "iam.IdentityProvider" },
  },
  {
    method: "iam.IdentityProviders/SetScimEnabled",
    request: ({ provider }) => ({ identityProviderId: provider, enabled: true, etag: "etag" }),
    ...{ shape: "created", type: "iam.SetScimEnabledResponse" },
  },
  {
    method: "iam.IdentityProviders/RegenerateScimToken",
    request: ({ provider }) => ({ identityProviderId: provider, etag: "etag" }),
    ...{ shape: "created", type: "iam.RegenerateScimTokenResponse" },
  },
  {
    method: "iam.IdentityProviders/RevokeScimToken",
    request: ({ provider }) => ({ identityProviderId: provider }),
    ...{ shape: "created", type: "iam.RevokeScimTokenResponse" },
  },
  {
    method: "iam.IdentityProviders/GenerateScimToken",
    request: ({ provider }) => ({ identityProviderId: provider }),
    ...{ shape: "created", type: "iam.GenerateScimTokenResponse" },
  },
  {
    method: "iam.ExternalGroupRoleMappings/Create",
    request: ({ provider, org }) => ({
      parentId: provider,
      mapping: { externalGroupId: "one", roleUidp: viewer, scope: org },
    }),
    ...{ shape: "created", type: "iam.ExternalGroupRoleMapping", keep: "mapping" },
  },
  {
    method: "iam.ExternalGroupRoleMappings/Delete",
    request: ({ mapping }) => ({ id: mapping }),
    ...{ shape: "deleted", type: "iam.ExternalGroupRoleMapping" },
  },
  {
    method: "iam.ExternalGroupRoleMappings/Create",
    request: ({ provider, org }) => ({
      parentId: provider,
      mapping: { externalGroupId: "two", roleUidp: viewer, scope: org },
    }),
    ...{ shape: "created", type: "iam.ExternalGroupRoleMapping", keep: "mapping" },
  },
  {
    method: "iam.ExternalGroupRoleMappings/BatchDelete",
    request: ({ provider, mapping }) => ({ parentId: provider, ids: [mapping] }),
    ...{ shape: "deleted", type: "iam.BatchDeleteExternalGroupRoleMappingsResponse" },
  },
  {
    method: "iam.IdentityProviders/Delete",
    request: ({ provider }) => ({ id: provider }),
    ...{ shape: "deleted", type: "iam.IdentityProvider" },
  },
  {
    method: "iam.GroupAccountAssociations/Create",
    request: ({ team }) => ({ group: team, name: "a", amazon: { account: "123456789012" } }),
    ...{ shape: "created", type: "iam.AccountAssociations" },
  },
  {
    method: "iam.GroupAccountAssociations/Update",
    request: ({ team }) => ({ group: team, name: "b", amazon: { account: "123456789012" } }),
    ...{ shape: "updated", type: "iam.AccountAssociations" },
  },
  { method: "iam.GroupAccountAssociations/Delete", request: ({ team }) => ({ group: team }), shape: "none" },
  {
    method: "iam.GroupInvites/Create",
    request: ({ team }) => ({ group: team, role: viewer, ttl: "60s", email: "x@acme.example" }),
    ...{ shape: "created", type: "iam.GroupInvite", keep: "invite", only: ["id", "expiration"] },
  },
  {
    method: "iam.GroupInvites/Delete",
    request: ({ invite }) => ({ id: invite }),
    ...{ shape: "deleted", type: "iam.GroupInvite", only: ["id", "expiration"] },
  },
  {
    method: "iam.Terms/AcceptTerms",
    request: ({ org }) => ({ group: org, documentIds: ["doc v1"] }),
    ...{ shape: "created", type: "iam.AcceptTermsResponse" },
  },
  {
    method: "events.Subscriptions/Create",
    request: ({ team }) => ({ parentId: team, subscription: { sink: "https://sink.example/" } }),
    ...{ shape: "created", type: "events.Subscription", keep: "subscription" },
  },
  {
    method: "events.Subscriptions/Delete",
    request: ({ subscription }) => ({ id: subscription }),
    ...{ shape: "deleted", type: "events.Subscription" },
  },
  {
    method: "registry.Registry/CreateRepo",
    request: ({ team }) => ({ parentId: team, repo: { name: "repo", readme: "# one" } }),
    ...{ shape: "created", type: "registry.Repo", keep: "repo" },
  },
  {
    method: "registry.Registry/UpdateRepo",
    request: ({ repo }) => ({ id: repo, name: "repo", readme: "# two" }),
    ...{ shape: "updated", type: "registry.Repo" },
  },
  {
    method: "registry.Registry/CreateTag",
    request: ({ repo }) => ({ repoId: repo, tag: { name: "latest", digest: digests[0] } }),
    ...{ shape: "created", type: "registry.Tag", keep: "tag" },
  },
  {
    method: "registry.Registry/UpdateTag",
    request: ({ tag }) => ({ id: tag, name: "latest", digest: digests[1] }),
    ...{ shape: "updated", type: "registry.Tag" },
  },
  {
    method: "registry.Registry/DeleteTag",
    request: ({ tag }) => ({ id: tag }),
    ...{ shape: "deleted", type: "registry.Tag" },
  },
  {
    method: "registry.Registry/CreateDeployment",
    request: ({ repo }) => ({ parentId: repo, charts: [{ repo: "https://charts.example/" }] }),
    ...{ shape: "created", type: "registry.Deployment" },
  },
  {
    method: "registry.Registry/UpdateDeployment",
    request: ({ repo }) => ({ repoId: repo, charts: [{ repo: "https://other.example/" }] }),
    ...{ shape: "updated", type: "registry.Deployment" },
  },
  {
    method: "registry.Registry/UpdateRegistrySettings",
    request: ({ org }) => ({ registryId: org, uniqueTags: true }),
    ...{ shape: "created", type: "registry.RegistrySettings" },
  },
  {
    method: "registry.Registry/UpdateRegistrySettings",
    request: ({ org }) => ({ registryId: org, uniqueTags: true, eolGracePeriod: true }),
    ...{ shape: "updated", type: "registry.RegistrySettings" },
  },
  {
    method: "registry.Registry/DeleteRepo",
    request: ({ repo }) => ({ id: repo }),
    ...{ shape: "deleted", type: "registry.Repo" },
  },
  {
    method: "vulnerabilities.v1.Advisories/Create",
    request: ({ team }) => ({
      parentId: team,
      advisory: {
        ...{ artifactName: "curl", artifactType: "apk", artifactArchitecture: "x86_64" },
        aliases: ["CVE-2026-0001"],
      },
    }),
    ...{ shape: "created", type: "vulnerabilities.v1.Advisory", keep: "advisory" },
  },
  {
    method: "vulnerabilities.v1.Advisories/Update",
    request: ({ advisory }) => ({
      ...{ id: advisory, artifactName: "curl", artifactType: "apk", artifactArchitecture: "x86_64" },
      aliases: ["CVE-2026-0002"],
    }),
    ...{ shape: "updated", type: "vulnerabilities.v1.Advisory" },
  },
  {
    method: "vulnerabilities.v1.Advisories/CreateAdvisoryEvent",
    request: ({ advisory }) => ({
      parentId: advisory,
      advisoryEvent: { status: "PENDING", fixed: { fixedVersion: "1.2.3" } },
    }),
    ...{ shape: "created", type: "vulnerabilities.v1.AdvisoryEvent", keep: "event" },
  },
  {
    method: "vulnerabilities.v1.Advisories/UpdateAdvisoryEvent",
    request: ({ event }) => ({ id: event, status: "PENDING", fixNotPlanned: {} }),
    ...{ shape: "updated", type: "vulnerabilities.v1.AdvisoryEvent" },
  },
  {
    method: "vulnerabilities.v1.Advisories/Delete",
    request: ({ advisory }) => ({ id: advisory }),
    ...{ shape: "deleted", type: "vulnerabilities.v1.Advisory" },
  },
  ...["binding", "second"].map(
    (name): Step => ({
      method: "iam.RoleBindings/Delete",
      request: (made) => ({ id: made[name] }),
      ...{ shape: "deleted", type: "iam.RoleBinding" },
    }),
  ),
  {
    method: "iam.Groups/Create",
    request: ({ org }) => ({ parent: org, group: { name: "empty" } }),
    ...{ shape: "created", type: "iam.Group", keep: "empty" },
  },
  {
    method: "iam.Groups/Delete",
    request: ({ empty }) => ({ id: empty }),
    ...{ shape: "deleted", type: "iam.Group" },
  },
  {
    method: "iam.Roles/Delete",
    request: ({ role }) => ({ id: role }),
    ...{ shape: "deleted", type: "iam.Role" },
  },
  {
    method: "iam.Identities/Delete",
    request: ({ bot }) => ({ id: bot }),
    ...{ shape: "deleted", type: "iam.Identity" },
  },
];
