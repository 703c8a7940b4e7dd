// Account associations of groups.
import { defineListedKind, usualSorts } from "../lists/resource.js";

/** Account associations as they are listed; each has the uid of its group. */
export const accountAssociationKind = defineListedKind(6, {
  table: "accountAssociations",
  parent: "parentUid",
  includesSelf: true,
  sorts: usualSorts,
});
