// How the kinds without a store of their own are kept in lists.
import { listedKind, usualSorts } from "./listed-kind.js";

const byCreation = [{ field: "created_at", type: "time", column: "createTimeMs" }] as const;

/** Identity providers. */
export const identityProviderLists = listedKind(5, {
  table: (t) => t.identityProviders,
  place: "groupUid",
  sorts: usualSorts,
});

/** Account associations, each at the uid of its group. */
export const accountAssociationLists = listedKind(6, {
  table: (t) => t.accountAssociations,
  place: "parentUid",
  listsItself: true,
  sorts: usualSorts,
});

/** Group invites. */
export const groupInviteLists = listedKind(7, { table: (t) => t.groupInvites, place: "groupUid", sorts: byCreation });

/** Subscriptions to events. */
export const subscriptionLists = listedKind(13, {
  table: (t) => t.subscriptions,
  place: "groupUid",
  sorts: byCreation,
});

/** Mappings of directories' groups; they lie below their provider. */
export const groupMappingLists = listedKind(8, {
  table: (t) => t.groupMappings,
  place: "providerUid",
  sorts: byCreation,
});
