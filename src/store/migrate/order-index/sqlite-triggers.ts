// The triggers on SQLite that copy into the new index what a serving instance of the version before writes into its own.
// That version inserts and deletes entries, and changes none in place; this one writes none of the old tables.
import { CHILDREN_BY_UID, GROUP_KIND, orders, PARENT_TABLES } from "./layout.js";

const directly = (row: "NEW" | "OLD") => `length(${row}.uid) = length(${row}.scope) + 17`;
const below = (row: "NEW" | "OLD") => `unhex(substr(${row}.uid, length(${row}.scope) + 2), '/')`;

/** The statements that create the triggers. */
export function createSqliteTriggers(): string[] {
  return [...orders.flatMap(({ name, from, to }) => [onInsert(name, from, to), onDelete(name, from, to)]), ...onRows()];
}

/** The statements that drop the triggers. */
export function dropSqliteTriggers(): string[] {
  const names = [
    ...orders.flatMap(({ from }) => [`copy_${from}_insert`, `copy_${from}_delete`]),
    ...PARENT_TABLES.map((table) => `copy_${table}_delete`),
  ];
  return names.map((name) => `DROP TRIGGER IF EXISTS ${name}`);
}

// A row may have been copied already: what was not inserted or deleted here must not be counted. changes() is that of
// the statement before.
function addToTotals(row: "NEW" | "OLD", n: 1 | -1): string {
  return `INSERT INTO totals (counter, scope, slot, n)
    SELECT ${row}.list / 8 * 2 + c.child, s.id, 0, ${n}
    FROM scopes s, (SELECT 0 AS child UNION ALL SELECT 1) c
    WHERE changes() = 1 AND ${row}.list % 8 = 0 AND s.uid = ${row}.scope AND (c.child = 0 OR ${directly(row)})
    ON CONFLICT DO UPDATE SET n = n + excluded.n;`;
}

function onInsert(name: "text" | "time", from: string, to: string): string {
  const insert = (list: string, key: string, condition = "true") => `INSERT INTO ${to} (list, scope, key, below)
    SELECT ${list}, id, ${key}, ${below("NEW")} FROM scopes WHERE uid = NEW.scope AND ${condition}
    ON CONFLICT DO NOTHING;`;
  const ofGroups = `NEW.list / 8 = ${GROUP_KIND} AND ${directly("NEW")}`;
  const byUid = insert(`${CHILDREN_BY_UID}`, "''", `NEW.list = ${GROUP_KIND * 8} AND ${directly("NEW")}`);
  return `CREATE TRIGGER copy_${from}_insert AFTER INSERT ON ${from} WHEN NEW.scope <> NEW.uid BEGIN
    INSERT INTO scopes (uid) SELECT NEW.scope WHERE NOT EXISTS (SELECT 1 FROM scopes WHERE uid = NEW.scope);
    ${insert("NEW.list", "NEW.key")}
    ${addToTotals("NEW", 1)}
    ${insert("NEW.list + 4", "NEW.key", ofGroups)}
    ${name === "text" ? byUid : ""}
  END`;
}

function onDelete(name: "text" | "time", from: string, to: string): string {
  const remove = (list: string, key: string, condition = "true") => `DELETE FROM ${to}
    WHERE ${condition} AND list = ${list} AND scope = (SELECT id FROM scopes WHERE uid = OLD.scope)
      AND key = ${key} AND below = ${below("OLD")};`;
  const ofGroups = `OLD.list / 8 = ${GROUP_KIND} AND ${directly("OLD")}`;
  const byUid = remove(`${CHILDREN_BY_UID}`, "''", `OLD.list = ${GROUP_KIND * 8} AND ${directly("OLD")}`);
  return `CREATE TRIGGER copy_${from}_delete AFTER DELETE ON ${from} WHEN OLD.scope <> OLD.uid BEGIN
    ${remove("OLD.list", "OLD.key")}
    ${addToTotals("OLD", -1)}
    ${remove("OLD.list + 4", "OLD.key", ofGroups)}
    ${name === "text" ? byUid : ""}
  END`;
}

// A deleted row has no rows below it, and its number is free.
function onRows(): string[] {
  return PARENT_TABLES.map(
    (table) => `CREATE TRIGGER copy_${table}_delete AFTER DELETE ON ${table} BEGIN
    DELETE FROM totals WHERE scope = (SELECT id FROM scopes WHERE uid = OLD.uid);
    DELETE FROM scopes WHERE uid = OLD.uid;
  END`,
  );
}
