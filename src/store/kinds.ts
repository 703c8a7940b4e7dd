// How the kinds without a store of their own are kept in lists.
import { defineResourceIndex, usualSorts } from "./resource-index.js";

const byCreation = [{ field: "created_at", type: "time", column: "createTimeMs" }] as const;

/** Identity providers. */
export const identityProviderLists = defineResourceIndex(5, {
  table: (t) => t.identityProviders,
  place: "groupUid",
  sorts: usualSorts,
});

/** Account associations, each at the uid of its group. */
export const accountAssociationLists = defineResourceIndex(6, {
  table: (t) => t.accountAssociations,
  place: "parentUid",
  listsItself: true,
  sorts: usualSorts,
});

/** Group invites. */
export const groupInviteLists = defineResourceIndex(7, {
  table: (t) => t.groupInvites,
  place: "groupUid",
  sorts: byCreation,
});

/** Subscriptions to events. */
export const subscriptionLists = defineResourceIndex(13, {
  table: (t) => t.subscriptions,
  place: "groupUid",
  sorts: byCreation,
});

/** Mappings of directories' groups; they lie below their provider. */
export const groupMappingLists = defineResourceIndex(8, {
  table: (t) => t.groupMappings,
  place: "providerUid",
  sorts: byCreation,
});
