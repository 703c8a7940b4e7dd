// The store of a kind whose rows are listed. Most kinds need nothing more; others extend it.
import { eq, getTableColumns, sql } from "drizzle-orm";
import { rootOf } from "../../kernel/uidp.js";
import type { Awaitable, IndexedStore, ListQuery, Page } from "../port.js";
import { buildInsertValues, buildUpdateValues, type Executor, statementFamily, takeFirst } from "../statement.js";
import { countRow } from "./counters.js";
import { listPage } from "./page.js";
import { columnOf, type ListedKind, type ListedRow, type ListedTables, ownColumns } from "./resource.js";

const keyOf = (kind: ListedKind) => String(kind.counter);

const get = statementFamily<ListedKind, { uid: string }, ListedRow>(keyOf, (kind) => (q, t) => {
  const table = kind.table(t);
  return q
    .select(ownColumns(table))
    .from(table)
    .where(eq(table.uid, sql.placeholder("uid")));
});

const insert = statementFamily<ListedKind, ListedRow & { readonly rootUid: string }>(keyOf, (kind) => (q, t) => {
  // The type of one table is used for all; the types of the rows check the values.
  const table = kind.table(t) as ListedTables & { $inferInsert: never };
  return q.insert(table).values(buildInsertValues(table));
});

const replace = statementFamily<ListedKind, ListedRow>(keyOf, (kind) => (q, t) => {
  const table = kind.table(t);
  const changing = Object.keys(getTableColumns(table)).filter(
    (name) => !["uid", "rootUid", "createTimeMs"].includes(name),
  );
  return q
    .update(table)
    .set(buildUpdateValues(table, ...(changing as never[])))
    .where(eq(table.uid, sql.placeholder("uid")));
});

const remove = statementFamily<ListedKind, { uid: string }>(keyOf, (kind) => (q, t) => {
  const table = kind.table(t);
  return q.delete(table).where(eq(table.uid, sql.placeholder("uid")));
});

const uidsWhere = statementFamily<{ kind: ListedKind; column: string }, { value: string; limit: number }, ListedRow>(
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
export class IndexedTable<Row extends ListedRow> implements IndexedStore<Row> {
  protected readonly tx: Executor;
  readonly #kind: ListedKind;

  constructor(tx: Executor, kind: ListedKind) {
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
    await this.tx.rows(insert(this.#kind), { ...row, rootUid: rootOf(row.uid) });
    await countRow(this.tx, this.#kind, row, 1);
  }

  async replace(row: Row): Promise<void> {
    await this.tx.rows(replace(this.#kind), row);
  }

  async update(uid: string, patch: Partial<Row>, updateTimeMs: number): Promise<Row | undefined> {
    const before = await this.find(uid);
    if (before === undefined) return undefined;
    const after = { ...before, ...patch, updateTimeMs };
    await this.tx.rows(replace(this.#kind), after);
    return after;
  }

  async delete(uid: string): Promise<void> {
    const row = await this.findStored(uid);
    if (row === undefined) return;
    await countRow(this.tx, this.#kind, row, -1);
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
