// Lists the migrations of stored rows.
import type { DataMigration } from "./data-migration.js";
import { managedBindings } from "./managed-bindings.js";
import { nameWords } from "./name-words.js";
import { scimOff } from "./scim-off.js";
import { tagFamilies } from "./tag-families.js";

/** All migrations of stored rows, in the order in which they run. New ones are added at the end. */
export const dataMigrations: readonly DataMigration[] = [tagFamilies, nameWords, scimOff, managedBindings];
