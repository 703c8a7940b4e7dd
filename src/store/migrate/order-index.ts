// The migration from the order index of version 0.4.0 (text_order, time_order, counters) to the compact one
// (store/tables.ts, docs/adr/0014-compact-order-index.md).
import { mapRows } from "../statement.js";
import type { ContractStatement, DataMigration, Dialect } from "./data-migration.js";
import { type BatchLimits, copyBatch } from "./order-index/fill.js";
import { childLists, kinds } from "./order-index/layout.js";
import {
  createBackwardTriggers,
  createForwardTriggers,
  dropPgFunctions,
  dropPgTriggers,
} from "./order-index/pg-triggers.js";
import { createSqliteTriggers, dropSqliteTriggers } from "./order-index/sqlite-triggers.js";

/** The position after the last batch, when the triggers for what this version writes are left to create. */
const COPIED = "copied";

// A row has an entry for each ancestor in each list. A uid of n characters has (n - 40) / 17 ancestors.
const COUNT_ENTRIES = `SELECT coalesce(sum(n), 0) AS entries FROM (
  SELECT ${childLists.length} * count(*) AS n FROM groups
  ${kinds
    .map(({ table, keys }) => `UNION ALL SELECT ${keys.length} * sum((length(uid) - 40) / 17) FROM ${table}`)
    .join("\n  ")}) counts`;

/** Indexes of groups that this version does not use. */
const OLD_INDEXES = [
  "groups_children_name",
  "groups_children_created",
  "groups_children_updated",
  "groups_name",
  "groups_created_by",
];

const OLD_TABLES = [
  { table: "text_order", key: "list, scope, key, uid", last: "list + 0, scope || '', key || '', uid || ''" },
  { table: "time_order", key: "list, scope, key, uid", last: "list + 0, scope || '', key + 0, uid || ''" },
  { table: "counters", key: "counter, scope, slot", last: "counter + 0, scope || '', slot + 0" },
];
/** How many rows one statement deletes. */
const DELETED_ROWS = 1_500;

/** Copies the order index of the version before into the compact one. */
export const orderIndexMigration = defineOrderIndexMigration({ rows: 1_000, entries: 2_500 });

/** Defines the migration with batches of other sizes, for tests. */
export function defineOrderIndexMigration(limits: BatchLimits): DataMigration {
  return {
    name: "order-index",

    begin: (dialect) => (dialect === "sqlite" ? createSqliteTriggers() : createForwardTriggers()),

    total: (tx) => mapRows(tx.query(COUNT_ENTRIES), ([row]) => Number(row?.entries)),

    async step(tx, position) {
      if (position !== COPIED) {
        const { position: next, done } = await copyBatch(tx, position, limits);
        return { position: next ?? (tx.dialect === "pg" ? COPIED : undefined), done };
      }
      for (const one of createBackwardTriggers()) await tx.run(one);
      return { position: undefined, done: 0 };
    },

    contract: (dialect) => [
      ...dropOldIndex(dialect),
      ...OLD_INDEXES.map((name) => ({ sql: `DROP INDEX IF EXISTS ${name}` })),
    ],
  };
}

// A group without entries of children has none, so nothing looks for rows by their parent any more.
const DROP_PARENT_KEY: Readonly<Record<Dialect, readonly string[]>> = {
  sqlite: [
    `UPDATE sqlite_schema SET sql = replace(sql,
      char(44, 10, 9) || 'FOREIGN KEY (\`parent_uid\`) REFERENCES \`groups\`(\`uid\`) ON UPDATE no action ON DELETE no action', '')
      WHERE type = 'table' AND name = 'groups'`,
    "DROP INDEX IF EXISTS groups_children_uid",
  ],
  pg: [
    "ALTER TABLE groups DROP CONSTRAINT IF EXISTS groups_parent_uid_groups_uid_fk",
    "DROP INDEX IF EXISTS groups_children_uid",
  ],
};

// SQLite reads every page of a table that it drops, and other writers wait meanwhile: it is emptied before. It compares
// by the whole key only with values that have no type of a column.
function dropOldIndex(dialect: Dialect): ContractStatement[] {
  const dropTables = OLD_TABLES.map(({ table }) => `DROP TABLE IF EXISTS ${table}`);
  if (dialect === "pg") {
    return [...dropPgTriggers(), ...dropTables, ...dropPgFunctions(), ...DROP_PARENT_KEY.pg].map(toStatement);
  }
  const empty = OLD_TABLES.map(({ table, key, last }) => ({
    sql: `DELETE FROM ${table} WHERE (${key}) <
      (SELECT ${last} FROM ${table} ORDER BY ${key} LIMIT 1 OFFSET ${DELETED_ROWS})`,
    repeat: true,
  }));
  const rest = [...dropTables, ...DROP_PARENT_KEY.sqlite].map(toStatement);
  return [...dropSqliteTriggers().map(toStatement), ...empty, ...rest];
}

function toStatement(sql: string): ContractStatement {
  return { sql };
}
