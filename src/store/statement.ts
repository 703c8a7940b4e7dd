// Hot statements are written once, as functions from a query builder to a
// query, and prepared once per connection: unprepared they cost six times as
// much, and prepared on a pool they would run outside the transaction.
import type { BaseSQLiteDatabase } from "drizzle-orm/sqlite-core";
import type { Awaitable } from "./port.js";
import type { Tables } from "./tables.js";

/** The query builder both dialects share. What only one of them has does not compile. */
export type Sql = Pick<
  BaseSQLiteDatabase<"async", unknown, Record<string, never>>,
  "select" | "insert" | "update" | "delete"
>;

/** A query that can be prepared. */
export interface Preparable {
  prepare(name?: string): unknown;
}

/** A statement with the values it takes and the rows it gives. */
export interface Statement<Params extends object, Row> {
  /** Where each connection keeps its prepared form. */
  readonly id: number;
  readonly build: (sql: Sql, tables: Tables) => Preparable;
  /** Types only: never set. */
  readonly types?: { params: Params; row: Row };
}

let count = 0;

/** Defines a statement; to be called once per statement, when its module loads or its shape is first met. */
export function statement<Params extends object, Row = never>(
  build: (sql: Sql, tables: Tables) => Preparable,
): Statement<Params, Row> {
  return { id: count++, build };
}

/** A family of statements that differ in shape: one per key, made when first asked for. */
export function statementFamily<Shape, Params extends object, Row = never>(
  keyOf: (shape: Shape) => string,
  build: (shape: Shape) => (sql: Sql, tables: Tables) => Preparable,
): (shape: Shape) => Statement<Params, Row> {
  const known = new Map<string, Statement<Params, Row>>();
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

/** Runs statements inside one open transaction. */
export interface Executor {
  /** Which of the counters' slots this transaction may choose from: 1 where there is one writer. */
  readonly counterSlots: number;
  rows<Params extends object, Row>(statement: Statement<Params, Row>, params: Params): Awaitable<Row[]>;
  /**
   * Lets others have the event loop when this transaction has kept it for a while. To be awaited between
   * the statements of work whose length depends on how much is stored. Writers on SQLite never pause: they
   * hold up all others.
   */
  pause?(): Promise<void> | undefined;
}
