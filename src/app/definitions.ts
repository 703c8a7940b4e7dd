// Every kind of resource in the API: its definition, and the services that manage it. Deletion, quotas, stable names and the
// services of the platform follow from this list.
import type { DescMethod, DescService } from "@bufbuild/protobuf";
import { GroupsService } from "#gen/chainguard/platform/iam/v2beta1/groups_pb.js";
import { RoleBindingsService } from "#gen/chainguard/platform/iam/v2beta1/role_bindings_pb.js";
import { ScimUsersService } from "#gen/chainguard/platform/iam/v2beta1/scim_users_pb.js";
import { ReposService } from "#gen/chainguard/platform/registry/v2beta1/repos_pb.js";
import { subscriptions, subscriptionsV1, subscriptionsV2beta1 } from "../events/subscriptions/subscription.js";
import { accountAssociations, accountAssociationsV2beta1 } from "../iam/account-associations/account-association.js";
import { accountAssociationsV1 } from "../iam/account-associations/account-association-v1.js";
import { groupInvites, groupInvitesV2beta1 } from "../iam/group-invites/group-invite.js";
import { groupInvitesV1 } from "../iam/group-invites/group-invite-v1.js";
import { type GroupMappingDeps, groupMappings, groupMappingsV2beta1 } from "../iam/group-mappings/group-mapping.js";
import { groupMappingsV1 } from "../iam/group-mappings/group-mapping-v1.js";
import { groups } from "../iam/groups/group.js";
import { groupsV1 } from "../iam/groups/group-v1.js";
import { type GroupsDeps, groupsV2beta1 } from "../iam/groups/group-v2beta1.js";
import { identities } from "../iam/identities/identity.js";
import { identitiesV1 } from "../iam/identities/identity-v1.js";
import { identitiesV2beta1 } from "../iam/identities/identity-v2beta1.js";
import { identityProviders } from "../iam/identity-providers/identity-provider.js";
import { identityProvidersV1 } from "../iam/identity-providers/identity-provider-v1.js";
import {
  type IdentityProviderDeps,
  identityProvidersV2beta1,
} from "../iam/identity-providers/identity-provider-v2beta1.js";
import { roleBindingsView } from "../iam/people/pending-bindings.js";
import { roleBindings } from "../iam/role-bindings/role-binding.js";
import { roleBindingsV1 } from "../iam/role-bindings/role-binding-v1.js";
import { roleBindingsV2beta1 } from "../iam/role-bindings/role-binding-v2beta1.js";
import { roles } from "../iam/roles/role.js";
import { rolesV1 } from "../iam/roles/role-v1.js";
import { rolesV2beta1 } from "../iam/roles/role-v2beta1.js";
import { scimGroups } from "../iam/scim-groups/scim-group.js";
import { scimUsers, scimUsersV2beta1 } from "../iam/scim-users/scim-user.js";
import { scimUsersV1 } from "../iam/scim-users/scim-user-v1.js";
import { termsAcceptances, termsV1, termsV2beta1 } from "../iam/terms/terms.js";
import { trustV1 } from "../iam/trust/trust-v1.js";
import {
  QUOTA_SET,
  REGISTRY_MOVED,
  REGISTRY_PUSH,
  SCIM_GROUP_CREATED,
  SCIM_GROUP_DELETED,
  SCIM_GROUP_UPDATED,
  SCIM_USER_REJECTED,
} from "../kernel/audit-body.js";
import type { QuotaLimits } from "../kernel/quotas.js";
import { stableTypeOf } from "../pipeline/body.js";
import type { ServedService } from "../pipeline/method-table.js";
import type { ResourceDefinition } from "../pipeline/resource/define.js";
import type { ResourceDeps } from "../pipeline/resource/read.js";
import { deployments } from "../registry/deployments/deployment.js";
import { overlays, overlaysV2beta1 } from "../registry/overlays/overlay.js";
import { overlayBindings, overlayBindingsV2beta1 } from "../registry/overlays/overlay-binding.js";
import { repos } from "../registry/repos/repo.js";
import { registrySettings } from "../registry/settings/settings-v1.js";
import { tags } from "../registry/tags/tag.js";
import { scimUserView } from "../scim/changes.js";
import { advisories } from "../vulnerabilities/advisories/advisory.js";
import { advisoriesV1 } from "../vulnerabilities/advisories/advisory-v1.js";
import { advisoriesV2beta1 } from "../vulnerabilities/advisories/advisory-v2beta1.js";

const { listRepos } = ReposService.method;
const { listScimUsers } = ScimUsersService.method;
const { listGroups } = GroupsService.method;
const { listRoleBindings } = RoleBindingsService.method;

/** What shows to callers of the API what bodies of the audit log say that no method writes, by the types of these. */
export const bodiesOfOthers = {
  [stableTypeOf(roleBindingsView)]: [listRoleBindings],
  [QUOTA_SET]: [listGroups],
  [REGISTRY_MOVED]: [listGroups],
  [REGISTRY_PUSH]: [listRepos],
  [stableTypeOf(scimUserView)]: [listScimUsers],
  [SCIM_USER_REJECTED]: [listScimUsers],
  [SCIM_GROUP_CREATED]: [listScimUsers],
  [SCIM_GROUP_UPDATED]: [listScimUsers],
  [SCIM_GROUP_DELETED]: [listScimUsers],
} as const satisfies Record<string, readonly DescMethod[]>;

/** What the handlers of kinds need. */
export interface KindDeps extends ResourceDeps, GroupsDeps, IdentityProviderDeps, GroupMappingDeps {
  /** The quotas that version 1 shows. */
  readonly limits: QuotaLimits;
}

interface ServedKind {
  readonly definition: ResourceDefinition;
  /** Creates its services; absent for kinds of the registry, whose services share one of version 1 (registry/services.ts). */
  readonly serve?: (deps: KindDeps) => readonly ServedService[];
}

/** The kinds. The error of a deletion names the first one in this order that blocks it. */
export const servedKinds: readonly ServedKind[] = [
  { definition: repos },
  { definition: tags },
  { definition: deployments },
  { definition: registrySettings },
  { definition: overlays, serve: (deps) => [overlaysV2beta1(deps)] },
  { definition: overlayBindings, serve: (deps) => [overlayBindingsV2beta1(deps)] },
  { definition: advisories, serve: (deps) => [advisoriesV2beta1(deps), advisoriesV1(deps)] },
  { definition: groups, serve: inBoth(groupsV2beta1, groupsV1) },
  {
    definition: identities,
    serve(deps) {
      const served = identitiesV2beta1(deps);
      return [served, identitiesV1(served), trustV1(served, deps)];
    },
  },
  { definition: identityProviders, serve: inBoth(identityProvidersV2beta1, identityProvidersV1) },
  { definition: groupMappings, serve: inBoth(groupMappingsV2beta1, groupMappingsV1) },
  { definition: scimGroups },
  { definition: scimUsers, serve: (deps) => [scimUsersV2beta1(deps), scimUsersV1()] },
  { definition: roles, serve: inBoth(rolesV2beta1, rolesV1) },
  { definition: roleBindings, serve: inBoth(roleBindingsV2beta1, roleBindingsV1) },
  { definition: groupInvites, serve: inBoth(groupInvitesV2beta1, groupInvitesV1) },
  { definition: accountAssociations, serve: inBoth(accountAssociationsV2beta1, accountAssociationsV1) },
  { definition: termsAcceptances, serve: inBoth(termsV2beta1, termsV1) },
  { definition: subscriptions, serve: inBoth(subscriptionsV2beta1, subscriptionsV1) },
];

/** The definitions, in the same order. */
export const definitions: readonly ResourceDefinition[] = servedKinds.map(({ definition }) => definition);

/** Serves a kind in version 2beta1, and in version 1, which is a view of that. */
function inBoth<D extends DescService>(
  v2beta1: (deps: KindDeps) => ServedService<D>,
  v1: (served: ServedService<D>, deps: KindDeps) => ServedService,
): (deps: KindDeps) => readonly ServedService[] {
  return (deps) => {
    const served = v2beta1(deps);
    return [served, v1(served, deps)];
  };
}
