// The statements that random lists run, with the plans that the database makes for them.
import assert from "node:assert/strict";
import { is, Param, Placeholder } from "drizzle-orm";
import { kinds } from "../../src/store/kinds.js";
import { listPage } from "../../src/store/lists/page.js";
import type { ListLimits } from "../../src/store/lists/plan.js";
import type { ListQuery } from "../../src/store/lists/query.js";
import type { Executor, Sql, Statement } from "../../src/store/statement.js";
import type { Store } from "../../src/store/store.js";
import { schema as tables } from "../../src/store/tables/schema-sqlite.js";
import type { Tables } from "../../src/store/tables/tables.js";
import { createRandom } from "../support/openapi/random.js";
import { chooseCase } from "./list-oracle.js";
import { OracleWorld } from "./list-oracle-world.js";

/** A statement as the database gets it. */
export interface ListStatement {
  readonly sql: string;
  readonly values: readonly unknown[];
  /** How many rows the page of the list has at most. */
  readonly limit: number;
}

/** How the statements of a database are written. */
export interface Dialect {
  readonly sql: Sql;
  readonly tables: Tables;
}

/** Creates rows of every kind, and calls `between` after the first few. */
export async function fillWorlds(store: Store, between: () => Promise<void>): Promise<OracleWorld[]> {
  const worlds: OracleWorld[] = [];
  for (let seed = 1; seed <= 4; seed++) {
    const world = new OracleWorld(store, createRandom(seed));
    await world.fill();
    worlds.push(world);
    if (seed === 1) await between();
  }
  return worlds;
}

/**
 * Reads random lists until they have run so many different statements.
 *
 * @param limits the bounds of one statement: so small that a few rows are a long list
 */
export async function collectStatements(
  store: Store,
  worlds: readonly OracleWorld[],
  { sql, tables: own }: Dialect,
  limits: ListLimits,
  count: number,
): Promise<ListStatement[]> {
  const found = new Map<string, ListStatement>();
  const random = createRandom(7);
  for (let i = 0; found.size < count; i++) {
    assert.ok(i < 20 * count, `${found.size} statements after ${i} lists`);
    const world = random.pick(worlds);
    const { kind, families, ...list } = chooseCase(world, random);
    // Their filters are read by indexes of their own.
    if (kind === "advisories" && list.filter.equals) continue;
    const listed = kinds.find((one) => one.table(tables) === tables[kind]);
    assert.ok(listed);
    const skip = random.chance(0.5) ? random.int(12) : 0;
    const record = (statement: Statement<object, unknown>, params: object) => {
      const query = statement.build(sql, own) as unknown as { toSQL(): { sql: string; params: unknown[] } };
      const { sql: text, params: values } = query.toSQL();
      if (!found.has(text))
        found.set(text, { sql: text, values: values.map((one) => bind(one, params)), limit: list.limit });
    };
    const read = async (query: ListQuery) =>
      store.read((tx) =>
        listPage(recordedBy(tx as unknown as Executor, record), listed, query, {
          limits,
          ...(families && { families }),
        }),
      );
    const { next } = await read({ ...list, skip });
    if (next) await read({ ...list, skip, after: next });
  }
  return [...found.values()];
}

function recordedBy(tx: Executor, record: (statement: Statement<object, unknown>, params: object) => void): Executor {
  return {
    counterSlots: tx.counterSlots,
    changedRows: tx.changedRows,
    nowMs: () => tx.nowMs(),
    clockMs: () => tx.clockMs(),
    rows(statement, params) {
      record(statement as Statement<object, unknown>, params);
      return tx.rows(statement, params);
    },
  };
}

function bind(value: unknown, params: object): unknown {
  const inner = is(value, Param) ? value.value : value;
  return is(inner, Placeholder) ? (params as Record<string, unknown>)[inner.name] : inner;
}
