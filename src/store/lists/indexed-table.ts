// The store of a kind whose rows are listed. Most kinds need nothing more; others extend it.
import { eq, getTableColumns, sql } from "drizzle-orm";
import { rootOf } from "../../kernel/uidp.js";
import type { Awaitable } from "../awaitable.js";
import { buildInsertValues, buildUpdateValues, type Executor, statementFamily, takeFirst } from "../statement.js";
import { countRow } from "./counters.js";
import { listPage } from "./page.js";
import type { ListQuery, Page } from "./query.js";
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

/** The store of a kind whose rows are kept in ordered lists. */
export class IndexedTable<Row extends ListedRow> {
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

  /** Makes the stored row equal to `row`; the uid and the creation time must be unchanged. */
  async replace(row: Row): Promise<void> {
    await this.tx.rows(replace(this.#kind), row);
  }

  /** Applies `patch` to the row and returns it, or undefined when it does not exist. */
  async update(uid: string, patch: Partial<Row>, updateTimeMs: number): Promise<Row | undefined> {
    const before = await this.find(uid);
    if (before === undefined) return undefined;
    const after = { ...before, ...patch, updateTimeMs };
    await this.tx.rows(replace(this.#kind), after);
    return after;
  }

  /** Does nothing when the row does not exist. */
  async delete(uid: string): Promise<void> {
    const row = await this.findStored(uid);
    if (row === undefined) return;
    await countRow(this.tx, this.#kind, row, -1);
    await this.tx.rows(remove(this.#kind), { uid });
  }

  list(query: ListQuery): Promise<Page<Row>> {
    return listPage<Row>(this.tx, this.#kind, query);
  }

  /** The uids of rows whose `column` has this value, at most `limit`. */
  async findUidsWhere(column: keyof Row & string, value: string, limit = 1_000): Promise<string[]> {
    const rows = await this.tx.rows(uidsWhere({ kind: this.#kind, column }), { value, limit });
    return rows.map(({ uid }) => uid);
  }
}
