// Copies the old order index into the new one, in batches. The new one has all lists of a scope next to each other, so the
// copy goes from scope to scope: what it adds comes at the end of the new tables, fills their pages and writes each once.
import type { Dialect, MigrationTx } from "../data-migration.js";
import { childLists, kinds, type OrderName, orders } from "./layout.js";

/** How large batches are. */
export interface BatchLimits {
  /** How many rows of a kind a batch of several scopes has at most; each has up to 7 entries. */
  readonly rows: number;
  /** How many entries a batch of one list has. */
  readonly entries: number;
}

/** A slot of totals that no writer adds to, so that batches and concurrent writers on PostgreSQL do not conflict. */
const SLOT = { sqlite: 0, pg: 32 };

/** A list as the copy finds it: in the old index, or the children of a group in its table. */
interface List {
  readonly order: OrderName;
  readonly list: number;
  /** The column of groups by which children are ordered; undefined for a list of the old index. */
  readonly children?: "name" | "create_time_ms" | "update_time_ms" | "uid";
}

/** Within a scope that has more rows than a batch: which of its lists is next, and after which entry. */
interface BatchPosition {
  readonly scope: string;
  readonly index: number;
  readonly after?: readonly [key: string | number, uid: string];
}

/** Where the next batch begins: with a scope, or within one. */
type Position = { readonly from: string } | BatchPosition;

// All lists of a scope, in the order of the new tables.
const lists: readonly List[] = orders.flatMap(({ name }) =>
  [
    ...kinds.flatMap(({ id, keys }) =>
      keys.flatMap((key, i): List[] => (key === name ? [{ order: name, list: id * 8 + i }] : [])),
    ),
    ...childLists.filter((child) => child.order === name),
  ].sort((one, other) => one.list - other.list),
);
const ofRows = lists.filter(({ list, children }) => list % 8 === 0 && children === undefined);

/**
 * Copies a batch.
 *
 * @param position what the batch before returned; the empty string at first
 */
export async function copyBatch(
  tx: MigrationTx,
  position: string,
  limits: BatchLimits,
): Promise<{ position: string | undefined; done: number }> {
  if (tx.dialect === "pg") await forceIndexes(tx);
  const start = (position === "" ? { from: "" } : JSON.parse(position)) as Position;
  const { next, done } = "from" in start ? await copyScopes(tx, start.from, limits) : await copyList(tx, start, limits);
  return { position: next && JSON.stringify(next), done };
}

// A sequential scan would read a whole table for each batch, and conflict with all its concurrent writers.
async function forceIndexes(tx: MigrationTx): Promise<void> {
  for (const plan of ["seqscan", "bitmapscan", "hashjoin", "mergejoin"]) await tx.run(`SET LOCAL enable_${plan} = off`);
}

interface Batch {
  readonly next: Position | undefined;
  readonly done: number;
}

async function copyScopes(tx: MigrationTx, from: string, limits: BatchLimits): Promise<Batch> {
  const ends = ofRows.map(
    ({ order, list }) => `SELECT * FROM (SELECT scope FROM ${tables[order].from}
      WHERE list = ${list} AND scope >= '${from}' ORDER BY scope, key, uid LIMIT 1 OFFSET ${limits.rows}) end_${list}`,
  );
  const [row] = await tx.query(`SELECT min(scope) AS scope FROM (${ends.join(" UNION ALL ")}) ends`);
  const end = row?.scope as string | null;
  // The first scope alone is larger than a batch.
  if (end === from) return copyList(tx, { scope: from, index: 0 }, limits);
  const isInRange = (column: string) =>
    end === null ? `${column} >= '${from}'` : `${column} >= '${from}' AND ${column} < '${end}'`;
  await tx.run(insertScopes(isInRange("scope")));
  let done = 0;
  for (const { name } of orders) {
    const ofOrder = lists.filter(({ order }) => order === name);
    const numbers = ofOrder.flatMap(({ list, children }) => (children === undefined ? [list] : []));
    const source = `SELECT list, scope, key, uid FROM ${tables[name].from}
      WHERE list IN (${numbers.join()}) AND ${isInRange("scope")} AND scope <> uid`;
    const children = ofOrder.flatMap((list) => (list.children ? [selectChildren(list, isInRange("parent_uid"))] : []));
    done += await copyEntries(tx, name, source, children);
  }
  return { next: end === null ? undefined : { from: end }, done };
}

// The batch of one list of one scope. The uids below a scope begin with the slash after it, and "!" comes before that.
async function copyList(tx: MigrationTx, { scope, index, after }: BatchPosition, limits: BatchLimits): Promise<Batch> {
  const list = lists[index];
  if (list === undefined) return { next: { from: `${scope}!` }, done: 0 };
  const { order, children } = list;
  const [table, inList, key] =
    children === undefined
      ? [tables[order].from, `list = ${list.list} AND scope = '${scope}'`, "key"]
      : ["groups", `parent_uid = '${scope}'`, children];
  const isAfter = after
    ? `${inList} AND (${key}, uid) > (${after.map((value) => toLiteral(tx.dialect, value)).join(", ")})`
    : inList;
  const [end] = await tx.query(
    `SELECT ${key} AS key, uid FROM ${table} WHERE ${isAfter} ORDER BY ${key}, uid LIMIT 1 OFFSET ${limits.entries - 1}`,
  );
  // PostgreSQL's driver returns large integers as texts.
  const last = end && ([order === "time" ? Number(end.key) : String(end.key), String(end.uid)] as const);
  const isInBatch = last
    ? `${isAfter} AND (${key}, uid) <= (${last.map((value) => toLiteral(tx.dialect, value)).join(", ")})`
    : isAfter;
  if (index === 0 && after === undefined) await tx.run(insertScopes(`scope = '${scope}'`));
  const done =
    children === undefined
      ? await copyEntries(
          tx,
          order,
          `SELECT list, scope, key, uid FROM ${table} WHERE ${isInBatch} AND scope <> uid`,
          [],
        )
      : await copyEntries(tx, order, undefined, [selectChildren(list, isInBatch)]);
  return { next: last ? { scope, index, after: last } : { scope, index: index + 1 }, done };
}

// Names may contain anything. SQLite uses a key for a comparison with a cast only where `||` hides the type of the cast.
function toLiteral(dialect: Dialect, value: string | number): string {
  if (typeof value === "number") return String(value);
  const hex = Buffer.from(value).toString("hex");
  return dialect === "sqlite" ? `CAST(x'${hex}' AS TEXT) || ''` : `convert_from('\\x${hex}', 'UTF8') COLLATE "C"`;
}

const tables = Object.fromEntries(orders.map(({ name, ...both }) => [name, both])) as Record<
  OrderName,
  { readonly from: string; readonly to: string }
>;

// Every row below a scope has an entry in the first list of its kind.
function insertScopes(isInRange: string): string {
  const scopes = orders.map(({ name, from }) => {
    const numbers = ofRows.filter(({ order }) => order === name).map(({ list }) => list);
    return `SELECT scope FROM ${from} WHERE list IN (${numbers.join()}) AND ${isInRange} AND scope <> uid`;
  });
  return `INSERT INTO scopes (uid) SELECT scope FROM (${scopes.join(" UNION ")}) found WHERE true ORDER BY scope
    ON CONFLICT DO NOTHING`;
}

function selectChildren({ list, children }: List, isInRange: string): string {
  const key = children === "uid" ? "''" : children;
  return `SELECT ${list} AS list, parent_uid AS scope, ${key} AS key, uid FROM groups WHERE ${isInRange}`;
}

/**
 * Inserts entries and counts those that no trigger has inserted before.
 *
 * @param source a query of entries of the old index
 * @param children queries of the same form that are not to be counted
 * @returns how many entries were inserted
 */
async function copyEntries(
  tx: MigrationTx,
  order: OrderName,
  source: string | undefined,
  children: readonly string[],
): Promise<number> {
  const { to } = tables[order];
  const below = {
    sqlite: "unhex(substr(o.uid, length(o.scope) + 2), '/')",
    pg: "decode(replace(substr(o.uid, length(o.scope) + 2), '/', ''), 'hex')",
  }[tx.dialect];
  const all = [...(source ? [source] : []), ...children].join(" UNION ALL ");
  const insert = `INSERT INTO ${to} (list, scope, key, below)
    SELECT o.list, s.id, o.key, ${below} FROM (${all}) o JOIN scopes s ON s.uid = o.scope
    WHERE true ORDER BY 2, 1, 3, 4 ON CONFLICT DO NOTHING`;
  const count = (added: string, isDirect: string) => `INSERT INTO totals (counter, scope, slot, n)
    SELECT a.list / 8 * 2 + c.child, a.scope, ${SLOT[tx.dialect]}, count(*)
    FROM ${added} a JOIN (SELECT 0 AS child UNION ALL SELECT 1) c ON c.child = 0 OR ${isDirect}
    WHERE a.list % 8 = 0 GROUP BY 1, 2 ORDER BY 2, 1
    ON CONFLICT (scope, counter, slot) DO UPDATE SET n = totals.n + excluded.n`;
  if (tx.dialect === "pg") {
    const [row] = await tx.query(`WITH added AS (${insert} RETURNING list, scope, below),
      counted AS (${count("added", "octet_length(a.below) = 8")}) SELECT count(*) AS added FROM added`);
    return Number(row?.added);
  }
  if (source) {
    const missing = `(SELECT o.list, s.id AS scope, length(o.uid) = length(o.scope) + 17 AS direct
      FROM (${source}) o JOIN scopes s ON s.uid = o.scope
      WHERE o.list % 8 = 0 AND NOT EXISTS (SELECT 1 FROM ${to} e
        WHERE e.list = o.list AND e.scope = s.id AND e.key = o.key AND e.below = ${below}))`;
    await tx.run(count(missing, "a.direct"));
  }
  return tx.run(insert);
}
