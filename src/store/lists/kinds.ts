// All kinds of rows that are listed, which `arbor check` and quotas read.
import { advisoryKind } from "../advisories/advisories.js";
import { accountAssociationKind } from "../iam/account-associations.js";
import { groupInviteKind } from "../iam/group-invites.js";
import { groupMappingKind } from "../iam/group-mappings.js";
import { groupKind } from "../iam/groups.js";
import { identityKind } from "../iam/identities.js";
import { identityProviderKind } from "../iam/identity-providers.js";
import { roleBindingKind } from "../iam/role-bindings.js";
import { roleKind } from "../iam/roles.js";
import { subscriptionKind } from "../iam/subscriptions.js";
import { repoKind } from "../registry/repos.js";
import { tagKind } from "../registry/tags.js";
import type { CountedQuota, ListedKind } from "./resource.js";

/** All kinds. */
export const listedKinds: readonly ListedKind[] = [
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
];

/** The kinds that quotas limit, by the names of the quotas. */
export const countedKinds: ReadonlyMap<CountedQuota, ListedKind> = new Map(
  listedKinds.flatMap((kind) => (kind.quota === undefined ? [] : [[kind.quota, kind] as const])),
);
