// The indexes of kinds that have no store class of their own, or only a small one.
import { defineResourceIndex, usualSorts } from "./resource-index.js";

const byCreation = [{ field: "created_at", type: "time", column: "createTimeMs" }] as const;

/** Identity providers. */
export const identityProviderLists = defineResourceIndex(5, {
  table: (t) => t.identityProviders,
  parent: "groupUid",
  sorts: usualSorts,
});

/** Account associations; each has the uid of its group. */
export const accountAssociationLists = defineResourceIndex(6, {
  table: (t) => t.accountAssociations,
  parent: "parentUid",
  includesSelf: "sometimes",
  sorts: usualSorts,
});

/** Group invites. */
export const groupInviteLists = defineResourceIndex(7, {
  table: (t) => t.groupInvites,
  parent: "groupUid",
  sorts: byCreation,
});

/** Subscriptions to events. */
export const subscriptionLists = defineResourceIndex(13, {
  table: (t) => t.subscriptions,
  parent: "groupUid",
  sorts: byCreation,
});

/** Mappings of directories' groups; their parent is the provider. */
export const groupMappingLists = defineResourceIndex(8, {
  table: (t) => t.groupMappings,
  parent: "providerUid",
  sorts: byCreation,
});
