// The triggers on PostgreSQL, where nodes of this version and of the one before run together until the contract phase. What
// either writes into its own index is copied into the other one. What a trigger writes is not copied back.
import { CHILDREN_BY_UID, GROUP_KIND, orders, PARENT_TABLES, selfListed } from "./layout.js";

/** Concurrent writers add to different slots of a total, as in the write path of either version. */
const SLOT = "floor(random() * 32)::int";
const TOP_LEVEL = "pg_trigger_depth() = 0";

interface Trigger {
  readonly name: string;
  readonly table: string;
  /** `AFTER INSERT`, for example. */
  readonly event: string;
  readonly when?: string;
  /** Whether it runs as the transaction commits. */
  readonly deferred?: boolean;
  readonly variables?: string;
  readonly body: string;
}

const directly = (row: "NEW" | "OLD") => `length(${row}.uid) = length(${row}.scope) + 17`;
const below = (row: "NEW" | "OLD") => `decode(replace(substr(${row}.uid, length(${row}.scope) + 2), '/', ''), 'hex')`;

/** What keeps the new index equal to the old one: for what the version before writes. */
const forward: readonly Trigger[] = [
  ...orders.flatMap(({ name, from, to }) => [copyInserted(name, from, to), copyDeleted(name, from, to)]),
  ...PARENT_TABLES.map(deleteScope),
];

/** What keeps the old index equal to the new one: for what this version writes. */
const backward: readonly Trigger[] = [
  ...orders.flatMap(({ from, to }) => [copyBack(from, to, "insert"), copyBack(from, to, "delete")]),
  copyTotals(),
  ...selfListed.map(({ table, kind }) => listInItself(table, kind)),
];

/** The statements that create the triggers for what the version before writes. */
export const createForwardTriggers = (): string[] => forward.flatMap(create);

/** The statements that create the triggers for what this version writes. None of its nodes may run before. */
export const createBackwardTriggers = (): string[] => backward.flatMap(create);

/** The statements that drop all triggers. The functions remain: {@link dropPgFunctions}. */
export const dropPgTriggers = (): string[] =>
  [...backward, ...forward].map(({ name, table }) => `DROP TRIGGER IF EXISTS ${name} ON ${table}`);

/** The statements that drop the functions of all triggers. */
export const dropPgFunctions = (): string[] =>
  [...backward, ...forward].map(({ name }) => `DROP FUNCTION IF EXISTS ${name}()`);

// Sequential scans of small tables would make concurrent serializable transactions conflict.
function create({ name, table, event, when, deferred, variables, body }: Trigger): string[] {
  return [
    `CREATE FUNCTION ${name}() RETURNS trigger LANGUAGE plpgsql SET enable_seqscan = off AS $body$
    ${variables ? `DECLARE ${variables}` : ""}
    BEGIN
      ${body}
      RETURN NULL;
    END $body$`,
    `CREATE ${deferred ? "CONSTRAINT " : ""}TRIGGER ${name} ${event} ON ${table}
    ${deferred ? "DEFERRABLE INITIALLY DEFERRED" : ""}
    FOR EACH ROW ${when ? `WHEN (${when})` : ""} EXECUTE FUNCTION ${name}()`,
  ];
}

function addToTotals(row: "NEW" | "OLD", n: 1 | -1): string {
  const add = (counter: string) => `INSERT INTO totals (counter, scope, slot, n)
        VALUES (${counter}, number, ${SLOT}, ${n})
        ON CONFLICT (counter, scope, slot) DO UPDATE SET n = totals.n + excluded.n;`;
  return `IF FOUND AND ${row}.list % 8 = 0 THEN
        ${add(`${row}.list / 8 * 2`)}
        IF ${directly(row)} THEN
        ${add(`${row}.list / 8 * 2 + 1`)}
        END IF;
      END IF;`;
}

function copyInserted(name: "text" | "time", from: string, to: string): Trigger {
  const insert = (list: string, key: string) =>
    `INSERT INTO ${to} (list, scope, key, below) VALUES (${list}, number, ${key}, path) ON CONFLICT DO NOTHING;`;
  return {
    name: `arbor_copy_${from}_insert`,
    table: from,
    event: "AFTER INSERT",
    when: `${TOP_LEVEL} AND NEW.scope <> NEW.uid`,
    variables: `number bigint; path bytea := ${below("NEW")};`,
    body: `SELECT id INTO number FROM scopes WHERE uid = NEW.scope;
      IF NOT FOUND THEN
        INSERT INTO scopes (uid) VALUES (NEW.scope) RETURNING id INTO number;
      END IF;
      ${insert("NEW.list", "NEW.key")}
      ${addToTotals("NEW", 1)}
      IF NEW.list / 8 = ${GROUP_KIND} AND ${directly("NEW")} THEN
        ${insert("NEW.list + 4", "NEW.key")}
        ${name === "text" ? `IF NEW.list = ${GROUP_KIND * 8} THEN ${insert(`${CHILDREN_BY_UID}`, "''")} END IF;` : ""}
      END IF;`,
  };
}

function copyDeleted(name: "text" | "time", from: string, to: string): Trigger {
  const remove = (list: string, key: string) =>
    `DELETE FROM ${to} WHERE list = ${list} AND scope = number AND key = ${key} AND below = path;`;
  return {
    name: `arbor_copy_${from}_delete`,
    table: from,
    event: "AFTER DELETE",
    when: `${TOP_LEVEL} AND OLD.scope <> OLD.uid`,
    variables: `number bigint; path bytea := ${below("OLD")};`,
    body: `SELECT id INTO number FROM scopes WHERE uid = OLD.scope;
      ${remove("OLD.list", "OLD.key")}
      ${addToTotals("OLD", -1)}
      IF OLD.list / 8 = ${GROUP_KIND} AND ${directly("OLD")} THEN
        ${remove("OLD.list + 4", "OLD.key")}
        ${name === "text" ? `IF OLD.list = ${GROUP_KIND * 8} THEN ${remove(`${CHILDREN_BY_UID}`, "''")} END IF;` : ""}
      END IF;`,
  };
}

// A deleted row has no rows below it, and its number is free.
function deleteScope(table: string): Trigger {
  return {
    name: `arbor_copy_${table}_delete`,
    table,
    event: "AFTER DELETE",
    variables: "number bigint;",
    body: `DELETE FROM scopes WHERE uid = OLD.uid RETURNING id INTO number;
      IF FOUND THEN
        DELETE FROM totals WHERE scope = number;
      END IF;`,
  };
}

// The lists of children are in no table of the version before: it reads them by indexes of the table of groups.
function copyBack(from: string, to: string, event: "insert" | "delete"): Trigger {
  const row = event === "insert" ? "NEW" : "OLD";
  const write =
    event === "insert"
      ? `INSERT INTO ${from} (list, scope, key, uid) VALUES (NEW.list, top, NEW.key, row_uid) ON CONFLICT DO NOTHING;`
      : `DELETE FROM ${from} WHERE list = OLD.list AND scope = top AND key = OLD.key AND uid = row_uid;`;
  return {
    name: `arbor_copy_${to}_${event}`,
    table: to,
    event: `AFTER ${event.toUpperCase()}`,
    when: `${TOP_LEVEL} AND ${row}.list % 8 < 4`,
    variables: `top text COLLATE "C"; row_uid text COLLATE "C";`,
    body: `SELECT uid INTO top FROM scopes WHERE id = ${row}.scope;
      row_uid := top || regexp_replace(encode(${row}.below, 'hex'), '(.{16})', '/\\1', 'g');
      ${write}`,
  };
}

// The number of a scope is deleted before its totals, whose sums are 0 then.
function copyTotals(): Trigger {
  return {
    name: "arbor_copy_totals",
    table: "totals",
    event: "AFTER INSERT OR UPDATE OR DELETE",
    when: TOP_LEVEL,
    variables: `top text COLLATE "C"; total record; change bigint;`,
    body: `IF TG_OP = 'DELETE' THEN
        total := OLD;
        change := -OLD.n;
      ELSIF TG_OP = 'UPDATE' THEN
        total := NEW;
        change := NEW.n - OLD.n;
      ELSE
        total := NEW;
        change := NEW.n;
      END IF;
      SELECT uid INTO top FROM scopes WHERE id = total.scope;
      IF FOUND AND change <> 0 THEN
        INSERT INTO counters (counter, scope, slot, n) VALUES (total.counter, top, total.slot, change)
        ON CONFLICT (counter, scope, slot) DO UPDATE SET n = counters.n + excluded.n;
      END IF;`,
  };
}

// This version writes no entries of rows in their own lists. That of the version before does. At the end of a transaction
// the trigger adds and removes what is left to do, so it does not matter which version wrote the row.
function listInItself(table: string, kind: number): Trigger {
  const entries = [
    { from: "text_order", list: kind * 8, column: "name" },
    { from: "time_order", list: kind * 8 + 1, column: "create_time_ms" },
    { from: "time_order", list: kind * 8 + 2, column: "update_time_ms" },
  ];
  const count = (uid: string, n: 1 | -1) => `IF FOUND THEN
          INSERT INTO counters (counter, scope, slot, n) VALUES (${kind * 2}, ${uid}, ${SLOT}, ${n})
          ON CONFLICT (counter, scope, slot) DO UPDATE SET n = counters.n + excluded.n;
        END IF;`;
  const move = ({
    from,
    list,
    column,
  }: (typeof entries)[number]) => `IF OLD.${column} IS DISTINCT FROM NEW.${column} THEN
        DELETE FROM ${from} WHERE list = ${list} AND scope = OLD.uid AND key = OLD.${column} AND uid = OLD.uid;
        ${list % 8 === 0 ? count("OLD.uid", -1) : ""}
        IF TG_OP <> 'DELETE' THEN
          INSERT INTO ${from} (list, scope, key, uid) VALUES (${list}, NEW.uid, NEW.${column}, NEW.uid)
          ON CONFLICT DO NOTHING;
          ${list % 8 === 0 ? count("NEW.uid", 1) : ""}
        END IF;
      END IF;`;
  return {
    name: `arbor_copy_${table}_self`,
    table,
    event: "AFTER INSERT OR UPDATE OR DELETE",
    deferred: true,
    body: entries.map(move).join("\n      "),
  };
}
