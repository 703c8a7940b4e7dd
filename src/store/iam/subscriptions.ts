// Subscriptions to events.
import { byCreation, defineListedKind } from "../lists/resource.js";

/** Subscriptions to events as they are listed. */
export const subscriptionKind = defineListedKind(13, {
  table: "subscriptions",
  parent: "groupUid",
  quota: "subscriptions",
  sorts: byCreation,
});
