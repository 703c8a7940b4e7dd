// The indexes of all kinds, which `arbor check`, ranks and quotas read.
import { advisoryIndex } from "./advisory-store.js";
import { groupIndex } from "./group-store.js";
import { identityIndex } from "./identity-store.js";
import { repoIndex } from "./registry-store.js";
import {
  accountAssociationIndex,
  groupInviteIndex,
  groupMappingIndex,
  type IndexedQuota,
  identityProviderIndex,
  type ResourceIndex,
  subscriptionIndex,
} from "./resource-index.js";
import { roleBindingIndex, roleIndex } from "./role-store.js";
import { tagIndex, usualTagIndex } from "./tag-store.js";

/** The indexes of all kinds. */
export const resourceIndexes: readonly ResourceIndex[] = [
  groupIndex,
  identityIndex,
  roleIndex,
  roleBindingIndex,
  identityProviderIndex,
  accountAssociationIndex,
  groupInviteIndex,
  groupMappingIndex,
  repoIndex,
  tagIndex,
  usualTagIndex,
  advisoryIndex,
  subscriptionIndex,
];

/** The indexes whose totals count the resources of a kind in the subtree of a root group. */
export const quotaIndexes: ReadonlyMap<IndexedQuota, ResourceIndex> = new Map(
  resourceIndexes.flatMap((index) => (index.quota === undefined ? [] : [[index.quota, index] as const])),
);
