// Statements are written once, as functions from a query builder to a query, and prepared once per
// connection: prepared on a pool they would run outside the transaction.
import {
  and,
  eq,
  getTableColumns,
  getTableName,
  type Placeholder,
  type SQL,
  type SQLWrapper,
  sql,
  type Table,
} from "drizzle-orm";
import type { AnySQLiteColumn, BaseSQLiteDatabase, SQLiteTable } from "drizzle-orm/sqlite-core";
import type { Tables } from "./tables/tables.js";

/** The part of the query builder that both dialects share. A feature of one dialect alone does not compile. */
export type Sql = Pick<
  BaseSQLiteDatabase<"async", unknown, Record<string, never>>,
  "select" | "insert" | "update" | "delete"
>;

/** Prepares a query. Every query can be prepared, but the types say so only where it reads tables, and not texts. */
export function prepareQuery(query: SQLWrapper, name?: string): unknown {
  return (query as unknown as { prepare(name?: string): unknown }).prepare(name);
}

/** A statement with the types of its parameters and of its rows. */
export interface Statement<Params extends object, Row> {
  /** The key under which each connection keeps its prepared form. */
  readonly id: number;
  readonly build: (sql: Sql, tables: Tables) => SQLWrapper;
  /** Types only: never set. */
  readonly types?: { params: Params; row: Row };
}

/** What is read of the rows of a statement. It may run further statements: the promise of the first one settles as theirs. */
export type Take<Row, T> = (rows: Row[]) => T | Promise<T>;

/** Runs statements inside one open transaction. */
export interface Executor {
  /** How many slots of a counter this transaction may choose from: 1 where there is one writer. */
  readonly counterSlots: number;
  /** How many rows its statements have inserted, updated or deleted so far. */
  readonly changedRows: number;
  /** Runs a statement. Resolves to what `take` returns for its rows, or to the rows. */
  rows<Params extends object, Row, T = Row[]>(
    statement: Statement<Params, Row>,
    params: Params,
    take?: Take<Row, T>,
  ): Promise<T>;
  /** The time of the database in epoch milliseconds; on SQLite, of the process. */
  nowMs(): Promise<number>;
  /** The time of this process in epoch milliseconds, by the clock of the service: rights end by it. */
  clockMs(): number;
  /**
   * Yields to the event loop when this transaction has run for some milliseconds. Work whose duration
   * depends on how much is stored awaits it between its statements. Writers on SQLite never yield,
   * because all other writers wait for them.
   *
   * @param atOnce whatever it has run so far: before work that is long in any case, so that several units that begin
   * together do not run in one turn of the event loop
   */
  pause?(atOnce?: boolean): Promise<void> | undefined;
}

/** A statement without the types of its values. */
export type AnyStatement = Pick<Statement<object, unknown>, "id" | "build">;

/** All statements that were defined so far, each at its id. */
export const definedStatements: AnyStatement[] = [];

/** Defines a statement. Call it once per statement: when its module loads, or when its shape is first used. */
export function statement<Params extends object, Row = never>(
  build: (sql: Sql, tables: Tables) => SQLWrapper,
): Statement<Params, Row> {
  const defined = { id: definedStatements.length, build };
  definedStatements.push(defined);
  return defined;
}

/** All families of statements: how each is built, and its statements so far. */
export const definedFamilies: { readonly build: unknown; readonly known: ReadonlyMap<string, AnyStatement> }[] = [];

/** Defines a family of statements that differ in shape: one per key, created when it is first used. */
export function statementFamily<Shape, Params extends object, Row = never>(
  keyOf: (shape: Shape) => string,
  build: (shape: Shape) => (sql: Sql, tables: Tables) => SQLWrapper,
): (shape: Shape) => Statement<Params, Row> {
  const known = new Map<string, Statement<Params, Row>>();
  definedFamilies.push({ build, known });
  return (shape) => {
    const key = keyOf(shape);
    let found = known.get(key);
    if (found === undefined) {
      found = statement<Params, Row>(build(shape));
      known.set(key, found);
    }
    return found;
  };
}

/** The column of a property of a table; throws TypeError when there is none. */
export function columnOf(table: SQLiteTable, property: string): AnySQLiteColumn {
  const column = (getTableColumns(table) as Record<string, AnySQLiteColumn | undefined>)[property];
  if (column === undefined) throw new TypeError(`${getTableName(table)} has no column ${property}`);
  return column;
}

/** The parameter of this name. */
export const value = (name: string) => sql.placeholder(name);

/**
 * The limit or the offset: a number, or the name of a parameter. It is written as a literal or as a sum, because whenever a
 * value is bound to a bare parameter of a limit, SQLite plans the statement again. The query builder takes both, but has no
 * type for them.
 */
export const rowLimit = (limit: number | string) =>
  (typeof limit === "number" ? sql.raw(String(limit)) : sql`${value(limit)} + 0`) as unknown as Placeholder;

/** The values of a prepared insert: one placeholder per column, named like the column's property. */
export function buildInsertValues<T extends Table>(table: T): T["$inferInsert"] {
  const names = Object.keys(getTableColumns(table));
  return Object.fromEntries(names.map((name) => [name, sql.placeholder(name)])) as T["$inferInsert"];
}

/**
 * The values of an insert of several rows. The placeholders of most columns have the number of the row at the end of their
 * names; the columns `same` have one value in all rows.
 */
export function buildManyValues<T extends Table>(
  table: T,
  size: number,
  ...same: readonly string[]
): T["$inferInsert"][] {
  const names = Object.keys(getTableColumns(table));
  return Array.from({ length: size }, (_, i) => {
    const row = names.map((name) => [name, value(same.includes(name) ? name : `${name}${i}`)]);
    return Object.fromEntries(row) as T["$inferInsert"];
  });
}

/** The values with which an insert overwrites these columns of a row that exists already. */
export function buildUpsertValues<T extends Table, K extends keyof T["$inferInsert"] & string>(
  table: T,
  ...names: readonly K[]
): Record<K, SQL> {
  const columns = getTableColumns(table);
  const entries = names.map((name) => [name, sql`excluded.${sql.identifier(columns[name]?.name ?? name)}`] as const);
  return Object.fromEntries(entries) as Record<K, SQL>;
}

/** The values of a prepared update of these columns; each placeholder is encoded as its column requires. */
export function buildUpdateValues<T extends Table, K extends keyof T["$inferInsert"] & string>(
  table: T,
  ...names: readonly K[]
): Pick<T["$inferInsert"], K> {
  const columns = getTableColumns(table);
  const entries = names.map((name) => [name, sql`${sql.param(sql.placeholder(name), columns[name])}`] as const);
  return Object.fromEntries(entries) as Pick<T["$inferInsert"], K>;
}

/** As {@link buildEquals}, for a table of any type. */
export function buildEqualsTo(table: SQLiteTable, names: readonly string[]): SQL | undefined {
  return and(
    ...names.map((name) => {
      const column = columnOf(table, name);
      return eq(column, sql.param(value(name), column));
    }),
  );
}

/** The condition that these columns equal the parameters with the names of their properties. */
export function buildEquals<T extends SQLiteTable, K extends keyof T["$inferSelect"] & string>(
  table: T,
  ...names: readonly K[]
): SQL | undefined {
  return buildEqualsTo(table, names);
}

/** A count as a number: PostgreSQL returns it as text. */
export function toNumber(expression: SQL): SQL<number> {
  return sql<number>`${expression}`.mapWith(Number);
}

/**
 * Builds parameters `name0`, `name1` and so on for a list of values. Their number is the next power of two, so
 * that few statements serve lists of all lengths; the last value is repeated.
 */
export function padParams<T extends string | number>(
  name: string,
  values: readonly T[],
): { size: number; params: Record<string, T> } {
  let size = 1;
  while (size < values.length) size *= 2;
  const params: Record<string, T> = {};
  for (let i = 0; i < size; i++) params[`${name}${i}`] = (values[Math.min(i, values.length - 1)] ?? "") as T;
  return { size, params };
}

/** The first row, if there is one. */
export function firstOf<Row>([row]: Row[]): Row | undefined {
  return row;
}

/** The total that a statement has counted; where it has several rows, their sum. */
export function sumOf(rows: { readonly total: number }[]): number {
  return rows.reduce((sum, { total }) => sum + total, 0);
}

const isAny = (rows: unknown[]) => rows.length > 0;
const lengthOf = (rows: unknown[]) => rows.length;
const discard = () => undefined;

/** A part of a transaction: what it does with the rows of some tables. */
export class TransactionPart {
  protected readonly tx: Executor;

  constructor(tx: Executor) {
    this.tx = tx;
  }

  /** The rows of a statement, or what `take` makes of them. */
  protected all<Params extends object, Row, T = Row[]>(
    statement: Statement<Params, Row>,
    params: Params,
    take?: Take<Row, T>,
  ): Promise<T> {
    return this.tx.rows(statement, params, take);
  }

  /** The first row, if there is one. */
  protected first<Params extends object, Row>(
    statement: Statement<Params, Row>,
    params: Params,
  ): Promise<Row | undefined> {
    return this.tx.rows(statement, params, firstOf<Row>);
  }

  /** Whether there are any rows. */
  protected has<Params extends object>(statement: Statement<Params, unknown>, params: Params): Promise<boolean> {
    return this.tx.rows(statement, params, isAny);
  }

  /** How many rows there are. */
  protected countOf<Params extends object>(statement: Statement<Params, unknown>, params: Params): Promise<number> {
    return this.tx.rows(statement, params, lengthOf);
  }

  /** Runs a statement whose rows are of no interest. */
  protected run<Params extends object>(statement: Statement<Params, unknown>, params: Params): Promise<void> {
    return this.tx.rows(statement, params, discard);
  }
}
