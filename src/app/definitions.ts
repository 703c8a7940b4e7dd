// Every kind of resource. Deletion, quotas and stable names use this list.
import type { DescMethod } from "@bufbuild/protobuf";
import { GroupsService } from "#gen/chainguard/platform/iam/v2beta1/groups_pb.js";
import { RoleBindingsService } from "#gen/chainguard/platform/iam/v2beta1/role_bindings_pb.js";
import { ReposService } from "#gen/chainguard/platform/registry/v2beta1/repos_pb.js";
import { subscriptions } from "../events/subscriptions/subscription.js";
import { accountAssociations } from "../iam/account-associations/account-association.js";
import { groupInvites } from "../iam/group-invites/group-invite.js";
import { groupMappings } from "../iam/group-mappings/group-mapping.js";
import { groups } from "../iam/groups/group.js";
import { identities } from "../iam/identities/identity.js";
import { identityProviders } from "../iam/identity-providers/identity-provider.js";
import { roleBindingsView } from "../iam/people/pending-bindings.js";
import { roleBindings } from "../iam/role-bindings/role-binding.js";
import { roles } from "../iam/roles/role.js";
import { termsAcceptances } from "../iam/terms/terms.js";
import { QUOTA_SET, REGISTRY_MOVED, REGISTRY_PUSH } from "../kernel/audit-body.js";
import { stableTypeOf } from "../pipeline/body.js";
import type { ResourceDefinition } from "../pipeline/resource/define.js";
import { deployments } from "../registry/deployments/deployment.js";
import { repos } from "../registry/repos/repo.js";
import { registrySettings } from "../registry/settings/settings-v1.js";
import { tags } from "../registry/tags/tag.js";
import { advisories } from "../vulnerabilities/advisories/advisory.js";

const { listRepos } = ReposService.method;
const { listGroups } = GroupsService.method;
const { listRoleBindings } = RoleBindingsService.method;

/** What shows to callers of the API what bodies of the audit log say that no method writes, by the types of these. */
export const bodiesOfOthers = {
  [stableTypeOf(roleBindingsView)]: [listRoleBindings],
  [QUOTA_SET]: [listGroups],
  [REGISTRY_MOVED]: [listGroups],
  [REGISTRY_PUSH]: [listRepos],
} as const satisfies Record<string, readonly DescMethod[]>;

/** The definitions. The error of a deletion names the first kind in this order that blocks it. */
export const definitions: readonly ResourceDefinition[] = [
  repos,
  tags,
  deployments,
  registrySettings,
  advisories,
  groups,
  identities,
  identityProviders,
  groupMappings,
  roles,
  roleBindings,
  groupInvites,
  accountAssociations,
  termsAcceptances,
  subscriptions,
];
