import * as columns from "./columns-sqlite.js";
import { defineTables } from "./tables.js";

/** The schema in SQLite; also what the migration generator reads. */
export const {
  groups,
  identities,
  roles,
  roleBindings,
  identityProviders,
  accountAssociations,
  groupInvites,
  groupMappings,
  termsAcceptances,
  accessRequests,
  keys,
  tickets,
  refreshTokens,
  audit,
  auditChain,
  auditHeads,
  auditSealer,
  settings,
  textOrder,
  timeOrder,
  counters,
} = defineTables(columns);
