// The statements that most tables need: rows are found, inserted, changed and deleted by the values of their columns.
// Statements with joins, ranges or a plan of their own are written out where they are used (statement.ts).
import { asc, getTableColumns, inArray, lt, sql } from "drizzle-orm";
import type { AnySQLiteColumn, SQLiteTable } from "drizzle-orm/sqlite-core";
import {
  buildEqualsTo,
  buildInsertValues,
  buildUpdateValues,
  buildUpsertValues,
  columnOf,
  rowLimit,
  type Sql,
  type Statement,
  statement,
  value,
} from "./statement.js";
import type { ListedRowOf, RowOf } from "./tables/columns-sqlite.js";
import type { KindTables } from "./tables/kind-tables.js";
import type { Tables } from "./tables/tables.js";

export type TableName = { [N in keyof Tables]: Tables[N] extends SQLiteTable ? N : never }[keyof Tables];

/** A row of a table as it is read; see {@link ownColumns}. */
export type RowIn<N extends TableName> =
  RowOf<Tables[N]> extends { readonly uid: string; readonly rootUid: string }
    ? ListedRowOf<Tables[N]>
    : RowOf<Tables[N]>;
type Field<N extends TableName> = keyof RowIn<N> & keyof RowOf<Tables[N]> & string;
type Values<N extends TableName, K extends string> = { readonly [P in K & keyof RowIn<N>]: NonNullable<RowIn<N>[P]> };

/**
 * The columns that rows have in memory: all but the uid of the root where it is a part of their own, and the number that
 * the database assigns.
 */
export function ownColumns(table: SQLiteTable): Record<string, AnySQLiteColumn> {
  const all = getTableColumns(table) as Record<string, AnySQLiteColumn>;
  const { rootUid: _, number: __, ...own } = all;
  return "uid" in own ? own : all;
}

interface SelectOptions<C extends string> {
  /** All unless set. */
  readonly columns?: readonly C[];
  readonly orderBy?: readonly string[];
}

/** Selects the rows whose columns `by` have the values of the parameters. */
export function selectRows<N extends TableName, K extends Field<N>, C extends Field<N> = Field<N>>(
  name: N,
  by: readonly K[],
  options: SelectOptions<C> = {},
): Statement<Values<N, K>, Pick<RowIn<N>, C & keyof RowIn<N>>> {
  return statement((q, t) => buildSelect(q, tableOf(t, name), by, options));
}

/** As {@link selectRows}, at most as many as the parameter `limit` says. */
export function selectSome<N extends TableName, K extends Field<N>, C extends Field<N> = Field<N>>(
  name: N,
  by: readonly K[],
  options: SelectOptions<C> = {},
): Statement<Values<N, K> & { readonly limit: number }, Pick<RowIn<N>, C & keyof RowIn<N>>> {
  return statement((q, t) => buildSelect(q, tableOf(t, name), by, options).limit(rowLimit("limit")));
}

/** Selects something where there is a row whose columns `by` have the values of the parameters. */
export function selectAny<N extends TableName, K extends Field<N>>(
  name: N,
  ...by: readonly K[]
): Statement<Values<N, K>, object> {
  return statement((q, t) => buildSelect(q, tableOf(t, name), by, { columns: by }).limit(rowLimit(1)));
}

export function insertRow<N extends TableName>(name: N): Statement<RowOf<Tables[N]>, never> {
  return statement((q, t) => buildInsert(q, tableOf(t, name)));
}

/** Inserts a row unless there is one with its key. */
export function insertMissing<N extends TableName>(name: N): Statement<RowOf<Tables[N]>, never> {
  return statement((q, t) => buildInsert(q, tableOf(t, name)).onConflictDoNothing());
}

/** Inserts a row, or overwrites the one with the same key; that one keeps the time of its creation. */
export function putRow<N extends TableName>(name: N, ...key: readonly Field<N>[]): Statement<RowOf<Tables[N]>, never> {
  return statement((q, t) => {
    const table = tableOf(t, name);
    const changing = Object.keys(ownColumns(table)).filter(
      (column) => column !== "createTimeMs" && !(key as readonly string[]).includes(column),
    );
    return buildInsert(q, table).onConflictDoUpdate({
      target: key.map((column) => columnOf(table, column)),
      set: buildUpsertValues(table, ...changing),
    });
  });
}

/** Sets the columns `changing` in the rows whose columns `by` have the values of the parameters. */
export function updateRows<N extends TableName, K extends Field<N>, C extends Field<N>>(
  name: N,
  by: readonly K[],
  changing: readonly C[],
): Statement<Values<N, K> & Pick<RowOf<Tables[N]>, C>, never> {
  return statement((q, t) => buildUpdate(q, tableOf(t, name), by, changing));
}

/** Deletes the rows whose columns `by` have the values of the parameters. */
export function deleteRows<N extends TableName, K extends Field<N>>(
  name: N,
  ...by: readonly K[]
): Statement<Values<N, K>, never> {
  return statement((q, t) => {
    const table = tableOf(t, name);
    return q.delete(table).where(buildEqualsTo(table, by));
  });
}

/**
 * As {@link deleteRows}, up to `limit` rows, and returns some of their columns. A small limit keeps other calls from
 * waiting.
 *
 * @param key the key of the table
 */
export function deleteSome<N extends TableName, K extends Field<N>, C extends Field<N>>(
  name: N,
  by: K,
  key: readonly Field<N>[],
  returned: readonly C[],
): Statement<Values<N, K> & { readonly limit: number }, Pick<RowIn<N>, C & keyof RowIn<N>>> {
  return statement((q, t) => {
    const table = tableOf(t, name);
    const keys = pickColumns(table, key);
    const some = q
      .select(keys)
      .from(table)
      .where(buildEqualsTo(table, [by]))
      .limit(rowLimit("limit"));
    // With the value of `by` as a condition of its own SQLite would look at all rows that have it.
    return q
      .delete(table)
      .where(sql`(${sql.join(Object.values(keys), sql`, `)}) in ${some}`)
      .returning(pickColumns(table, returned));
  });
}

/**
 * Deletes up to `limit` rows whose column has a value below `bound`, and returns their keys. A small limit keeps other
 * calls from waiting.
 */
export function sweepRows<N extends TableName>(
  name: N,
  key: Field<N>,
  column: Field<N>,
): Statement<{ readonly bound: number; readonly limit: number }, object> {
  return statement((q, t) => {
    const table = tableOf(t, name);
    const found = { key: columnOf(table, key) };
    const old = q
      .select(found)
      .from(table)
      .where(lt(columnOf(table, column), value("bound")))
      .limit(rowLimit("limit"));
    return q.delete(table).where(inArray(found.key, old)).returning(found);
  });
}

/** The statements of a listed table, whose key is the uid. */
export function defineListedRows<Row extends { readonly uid: string }>(
  name: keyof KindTables,
  parent: string,
  fixed: readonly string[],
  returned: readonly string[],
) {
  return {
    find: statement<{ readonly uid: string }, Row>((q, t) => buildSelect(q, t[name], ["uid"], {})),
    insert: statement<Row & { readonly rootUid: string }>((q, t) => buildInsert(q, t[name])),
    /** Sets all columns but those that never change. */
    replace: statement<Row>((q, t) => {
      const table = t[name];
      const unchanged = ["uid", "createTimeMs", parent, ...fixed];
      const changing = Object.keys(ownColumns(table)).filter((column) => !unchanged.includes(column));
      return buildUpdate(q, table, ["uid"], changing);
    }),
    /** Deletes a row, and returns what its counters and the words of its name need. */
    remove: statement<{ readonly uid: string }, { readonly uid: string }>((q, t) => {
      const table = t[name];
      const columns = pickColumns(table, ["uid", ...returned]);
      return q
        .delete(table)
        .where(buildEqualsTo(table, ["uid"]))
        .returning(columns);
    }),
  };
}

function tableOf(t: Tables, name: TableName): SQLiteTable {
  return t[name];
}

function buildSelect(q: Sql, table: SQLiteTable, by: readonly string[], options: SelectOptions<string>) {
  const { columns, orderBy = [] } = options;
  return q
    .select(columns ? pickColumns(table, columns) : ownColumns(table))
    .from(table)
    .where(buildEqualsTo(table, by))
    .orderBy(...orderBy.map((column) => asc(columnOf(table, column))));
}

function buildInsert(q: Sql, table: SQLiteTable) {
  const values: Record<string, unknown> = buildInsertValues(table);
  // The database assigns it.
  if ("uid" in values) delete values.number;
  return q.insert(table).values(values);
}

function buildUpdate(q: Sql, table: SQLiteTable, by: readonly string[], changing: readonly string[]) {
  return q
    .update(table)
    .set(buildUpdateValues(table, ...changing))
    .where(buildEqualsTo(table, by));
}

function pickColumns(table: SQLiteTable, names: readonly string[]): Record<string, AnySQLiteColumn> {
  return Object.fromEntries(names.map((name) => [name, columnOf(table, name)]));
}
