// The schema, defined once and built per dialect (schema-sqlite.ts, schema-pg.ts). Every column that a
// query filters by has an index: on PostgreSQL a sequential scan would make concurrent serializable
// writers conflict for no reason.
import { defineAdvisoryTables } from "./tables/advisories.js";
import { defineAuditTables } from "./tables/audit.js";
import type { Columns } from "./tables/columns-sqlite.js";
import { defineGroupTables } from "./tables/groups.js";
import { defineIdentityTables } from "./tables/identities.js";
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
    settings,
    ...defineRegistryTables(c, groupTables),
    ...defineAdvisoryTables(c, groupTables),
    ...defineIndexTables(c),
    // Expressions, not tables, but equally different between the databases.
    anyOf: c.anyOf,
    scopesIn: c.scopesIn,
  };
}

// What keeps the cost of lists independent of their length (ordered-list.ts): for each sortable field of
// a kind one entry per ancestor in the order of the field, and counters per ancestor. The value of a
// counter is the sum of its slots; on PostgreSQL concurrent writers use different slots.
function defineIndexTables(c: Columns) {
  const textOrder = c.table(
    "text_order",
    {
      list: c.int("list").notNull(),
      scope: c.str("scope").notNull(),
      key: c.str("key").notNull(),
      uid: c.str("uid").notNull(),
    },
    (t) => [c.primaryKey({ columns: [t.list, t.scope, t.key, t.uid] })],
  );
  const timeOrder = c.table(
    "time_order",
    {
      list: c.int("list").notNull(),
      scope: c.str("scope").notNull(),
      key: c.long("key").notNull(),
      uid: c.str("uid").notNull(),
    },
    (t) => [c.primaryKey({ columns: [t.list, t.scope, t.key, t.uid] })],
  );
  const counters = c.table(
    "counters",
    {
      counter: c.int("counter").notNull(),
      scope: c.str("scope").notNull(),
      slot: c.int("slot").notNull(),
      n: c.long("n").notNull(),
    },
    (t) => [c.primaryKey({ columns: [t.counter, t.scope, t.slot] })],
  );
  return { textOrder, timeOrder, counters };
}

/** The tables of the schema, as either dialect builds them. */
export type Tables = ReturnType<typeof defineTables>;
