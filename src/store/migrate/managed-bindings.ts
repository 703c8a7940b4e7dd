// Lets a directory bind a role that is bound by hand already. Until all servers know managed bindings of directories, there is one
// binding of an identity to a role at a group, whoever manages it; then there is one of each manager.
import type { DataMigration } from "./data-migration.js";

/** The migration. It copies nothing: the indexes that replace the old one are there from the beginning. */
export const managedBindings: DataMigration = {
  name: "managed-bindings",
  begin: () => [],
  total: async () => 0,
  step: async () => ({ position: undefined, done: 0 }),
  contract: () => [{ sql: "DROP INDEX role_bindings_same" }],
};
