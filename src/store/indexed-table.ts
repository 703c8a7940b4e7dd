// The store of a kind whose rows are kept in ordered lists. Most kinds need nothing more; others extend it.
import { eq, getTableColumns, sql } from "drizzle-orm";
import { addToIndex, reindex, removeFromIndex } from "./index-maintenance.js";
import { listPage } from "./ordered-list.js";
import type { Awaitable, IndexedStore, ListQuery, Page } from "./port.js";
import { columnOf, type IndexedRow, type IndexedTables, type ResourceIndex } from "./resource-index.js";
import { buildInsertValues, buildUpdateValues, type Executor, statementFamily, takeFirst } from "./statement.js";

const keyOf = (kind: ResourceIndex) => String(kind.counter);

const get = statementFamily<ResourceIndex, { uid: string }, IndexedRow>(keyOf, (kind) => (q, t) => {
  const table = kind.table(t);
  return q
    .select(getTableColumns(table))
    .from(table)
    .where(eq(table.uid, sql.placeholder("uid")));
});

const insert = statementFamily<ResourceIndex, IndexedRow>(keyOf, (kind) => (q, t) => {
  // The type of one table is used for all; the types of the rows check the values.
  const table = kind.table(t) as IndexedTables & { $inferInsert: never };
  return q.insert(table).values(buildInsertValues(table));
});

const replace = statementFamily<ResourceIndex, IndexedRow>(keyOf, (kind) => (q, t) => {
  const table = kind.table(t);
  const changing = Object.keys(getTableColumns(table)).filter((name) => name !== "uid" && name !== "createTimeMs");
  return q
    .update(table)
    .set(buildUpdateValues(table, ...(changing as never[])))
    .where(eq(table.uid, sql.placeholder("uid")));
});

const remove = statementFamily<ResourceIndex, { uid: string }>(keyOf, (kind) => (q, t) => {
  const table = kind.table(t);
  return q.delete(table).where(eq(table.uid, sql.placeholder("uid")));
});

const uidsWhere = statementFamily<
  { kind: ResourceIndex; column: string },
  { value: string; limit: number },
  IndexedRow
>(
  ({ kind, column }) => `${kind.counter} ${column}`,
  ({ kind, column }) =>
    (q, t) => {
      const table = kind.table(t);
      return q
        .select({ uid: table.uid })
        .from(table)
        .where(eq(columnOf(table, column), sql.placeholder("value")))
        .limit(sql.placeholder("limit"));
    },
);

/** Rows of one kind; see {@link IndexedStore}. */
export class IndexedTable<Row extends IndexedRow> implements IndexedStore<Row> {
  protected readonly tx: Executor;
  readonly #kind: ResourceIndex;

  constructor(tx: Executor, kind: ResourceIndex) {
    this.tx = tx;
    this.#kind = kind;
  }

  find(uid: string): Awaitable<Row | undefined> {
    return this.findStored(uid);
  }

  /** Finds a row that {@link find} may hide. */
  protected findStored(uid: string): Awaitable<Row | undefined> {
    return takeFirst(this.tx.rows(get(this.#kind), { uid })) as Awaitable<Row | undefined>;
  }

  async insert(row: Row): Promise<void> {
    await this.tx.rows(insert(this.#kind), row);
    await addToIndex(this.tx, this.#kind, row);
  }

  async replace(row: Row): Promise<void> {
    const before = await this.find(row.uid);
    if (before === undefined) return;
    await this.tx.rows(replace(this.#kind), row);
    await reindex(this.tx, this.#kind, before, row);
  }

  async update(uid: string, patch: Partial<Row>, updateTimeMs: number): Promise<Row | undefined> {
    const before = await this.find(uid);
    if (before === undefined) return undefined;
    const after = { ...before, ...patch, updateTimeMs };
    await this.tx.rows(replace(this.#kind), after);
    await reindex(this.tx, this.#kind, before, after);
    return after;
  }

  async delete(uid: string): Promise<void> {
    const row = await this.findStored(uid);
    if (row === undefined) return;
    await removeFromIndex(this.tx, this.#kind, row);
    await this.tx.rows(remove(this.#kind), { uid });
  }

  list(query: ListQuery): Promise<Page<Row>> {
    return listPage<Row>(this.tx, this.#kind, query);
  }

  async findUidsWhere(column: keyof Row & string, value: string, limit = 1_000): Promise<string[]> {
    const rows = await this.tx.rows(uidsWhere({ kind: this.#kind, column }), { value, limit });
    return rows.map(({ uid }) => uid);
  }
}
