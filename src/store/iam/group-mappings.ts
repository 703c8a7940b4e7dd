// Mappings of directories' groups to roles.
import { byCreation, defineListedKind } from "../lists/resource.js";

/** Mappings of directories' groups as they are listed; their parent is the provider. */
export const groupMappingKind = defineListedKind(8, {
  table: "groupMappings",
  parent: "providerUid",
  quota: "mappings",
  sorts: byCreation,
});
