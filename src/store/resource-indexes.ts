// The indexes of all kinds.
import { advisoryIndex } from "./advisory-store.js";
import { groupIndex } from "./group-store.js";
import { identityIndex } from "./identity-store.js";
import { repoIndex } from "./registry-store.js";
import {
  accountAssociationIndex,
  groupInviteIndex,
  groupMappingIndex,
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
