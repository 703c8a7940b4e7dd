// All kinds of resources, in the order of their numbers; the next is 18. The schema, lists, quotas, `arbor check` and `arbor copy`
// read this list.
import { advisoryKind } from "./advisories/advisories.js";
import { accountAssociationKind } from "./iam/account-associations.js";
import { groupInviteKind } from "./iam/group-invites.js";
import { groupMappingKind } from "./iam/group-mappings.js";
import { groupKind } from "./iam/groups.js";
import { identityKind } from "./iam/identities.js";
import { identityProviderKind } from "./iam/identity-providers.js";
import { roleBindingKind } from "./iam/role-bindings.js";
import { roleKind } from "./iam/roles.js";
import { scimGroupKind } from "./iam/scim-groups.js";
import { scimUserKind } from "./iam/scim-users.js";
import { subscriptionKind } from "./iam/subscriptions.js";
import type { DeclaredKind, Kind } from "./kind.js";
import type { ListedTable } from "./lists/listed-table.js";
import type { CountedQuota, ListedRow } from "./lists/resource.js";
import { overlayBindingKind } from "./registry/overlay-bindings.js";
import { overlayKind } from "./registry/overlays.js";
import { repoKind } from "./registry/repos.js";
import { tagKind } from "./registry/tags.js";

/** All kinds. */
export const kinds: readonly (DeclaredKind & Kind<ListedTable<ListedRow, object>>)[] = [
  groupKind,
  identityKind,
  roleKind,
  roleBindingKind,
  identityProviderKind,
  accountAssociationKind,
  groupInviteKind,
  groupMappingKind,
  repoKind,
  tagKind,
  advisoryKind,
  subscriptionKind,
  overlayKind,
  overlayBindingKind,
  scimUserKind,
  scimGroupKind,
];

/** The kinds that quotas limit, by the names of the quotas. */
export const countedKinds: ReadonlyMap<CountedQuota, DeclaredKind> = new Map(
  kinds.flatMap((kind) => (kind.quota === undefined ? [] : [[kind.quota, kind] as const])),
);
