import * as columns from "./tables/columns-pg.js";
import type { Columns } from "./tables/columns-sqlite.js";
import { defineTables } from "./tables.js";

/** The schema in PostgreSQL; also what the migration generator reads. */
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
  subscriptions,
  accessRequests,
  keys,
  tickets,
  refreshTokens,
  audit,
  auditChain,
  auditHeads,
  auditSealer,
  settings,
  repos,
  tags,
  tagHistory,
  tagMarks,
  registryEvents,
  manifests,
  deployments,
  registrySettings,
  advisories,
  advisoryEvents,
  advisoryAliases,
  textOrder,
  timeOrder,
  counters,
  anyOf,
  scopesIn,
  // The query-builder surface that stores use is the same in both dialects; only its types differ.
} = defineTables(columns as unknown as Columns);
