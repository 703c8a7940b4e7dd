// The schema, defined once and built per dialect (schema-sqlite.ts, schema-pg.ts). Every column that a
// query filters by has an index: on PostgreSQL a sequential scan would make concurrent serializable
// writers conflict for no reason.
import { defineAdvisoryTables } from "./tables/advisories.js";
import { defineAuditTables } from "./tables/audit.js";
import type { Columns } from "./tables/columns-sqlite.js";
import { defineEntryTables } from "./tables/entries.js";
import { defineGroupTables } from "./tables/groups.js";
import { defineIdentityTables } from "./tables/identities.js";
import { defineJobTables } from "./tables/jobs.js";
import { defineMigrationTables } from "./tables/migrations.js";
import { defineRegistryTables } from "./tables/registry.js";
import { defineRoleTables } from "./tables/roles.js";
import { defineTokenTables } from "./tables/tokens.js";

/** Builds the tables of the schema from a dialect's column types. */
export function defineTables(c: Columns) {
  const groupTables = defineGroupTables(c);
  const roleTables = defineRoleTables(c, groupTables);
  const settings = c.table("settings", {
    name: c.str("name").primaryKey(),
    value: c.str("value").notNull(),
  });
  return {
    ...groupTables,
    ...roleTables,
    ...defineIdentityTables(c, { ...groupTables, ...roleTables }),
    ...defineTokenTables(c),
    ...defineAuditTables(c),
    ...defineJobTables(c),
    settings,
    ...defineRegistryTables(c, groupTables),
    ...defineAdvisoryTables(c, groupTables),
    ...defineEntryTables(c),
    ...defineMigrationTables(c),
    // Expressions, not tables, but equally different between the databases.
    anyOf: c.anyOf,
    topsIn: c.topsIn,
    uidBelow: c.uidBelow,
    numbersIn: c.numbersIn,
    joinNumbers: c.joinNumbers,
    contains: c.contains,
    hasTextIndex: c.hasTextIndex,
    foundTexts: c.foundTexts,
  };
}

/** The tables of the schema, as either dialect builds them. */
export type Tables = ReturnType<typeof defineTables>;
