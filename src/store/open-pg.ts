// Opens the store in PostgreSQL: a pool of connections, and serializable transactions that run again after conflicts.
import { fileURLToPath } from "node:url";
import { drizzle, type NodePgDatabase } from "drizzle-orm/node-postgres";
import { migrate } from "drizzle-orm/node-postgres/migrator";
import pg from "pg";
import { aborted, deadlineExceeded, unavailable } from "../kernel/errors.js";
import { type Clock, systemClock } from "../kernel/time.js";
import type { Awaitable, Store, Tx, UnitOptions } from "./port.js";
import * as schema from "./schema-pg.js";
import type { Executor, Preparable, Sql, Statement } from "./statement.js";
import type { Tables } from "./tables.js";
import { Transaction } from "./transaction.js";

const MIGRATIONS = fileURLToPath(new URL("./migrations/pg", import.meta.url));
/** An arbitrary number for the advisory lock that no other program should use. */
const MIGRATION_LOCK = 0x4172626f;
/** Concurrent writers that change the same counter use different rows of it, so that they rarely conflict. */
const COUNTER_SLOTS = 32;
const MAX_UNIT_MS = 30_000;
/** After its last row got a number, a unit runs the rest of that statement, idles and commits; the server limits each. */
const LATE_COMMIT_MS = 4 * MAX_UNIT_MS;

/** How to open a PostgreSQL store. */
export interface PgOptions {
  /** `postgres://user:password@host:port/database`. */
  readonly url: string;
  /** The maximum number of connections. */
  readonly poolSize?: number;
  readonly clock?: Clock;
}

/**
 * Opens the store in a PostgreSQL database, bringing its schema up to date.
 *
 * Writes are SERIALIZABLE and run again after a conflict (40001, 40P01), with jitter, until their
 * deadline. Each read sees one snapshot. All statements go to the primary.
 *
 * @throws Error when the server may lose acknowledged commits (`synchronous_commit = off`).
 */
export async function openPg(options: PgOptions): Promise<Store> {
  const { clock = systemClock } = options;
  const pool = new pg.Pool({
    connectionString: options.url,
    max: options.poolSize ?? 10,
    connectionTimeoutMillis: 5_000,
    statement_timeout: MAX_UNIT_MS,
    idle_in_transaction_session_timeout: MAX_UNIT_MS,
    application_name: "arbor",
  });
  // Without a listener the error of an idle connection would end the process.
  pool.on("error", () => {});
  try {
    await prepareDatabase(pool);
  } catch (error) {
    await pool.end();
    throw error;
  }
  const executors = new WeakMap<pg.PoolClient, Executor>();

  return {
    read: (unit, units) => runWithRetries("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", unit, units),
    write: (unit, units) => runWithRetries("BEGIN ISOLATION LEVEL SERIALIZABLE", unit, units),
    lateCommitMs: LATE_COMMIT_MS,
    async check() {
      await pool.query("SELECT 1 FROM settings LIMIT 1").catch((error) => {
        throw unavailable("the database cannot be reached", 1000, error);
      });
    },
    close: () => pool.end(),
  };

  async function runWithRetries<T>(begin: string, unit: (tx: Tx) => Awaitable<T>, units?: UnitOptions): Promise<T> {
    const deadlineMs = Math.min(units?.deadlineMs ?? Number.POSITIVE_INFINITY, clock() + MAX_UNIT_MS);
    for (let tries = 1; ; tries++) {
      if (clock() > deadlineMs) throw deadlineExceeded();
      try {
        return await runOnce(begin, unit);
      } catch (error) {
        if (!isConflict(error)) throw toApiError(error);
        const pauseMs = Math.random() * Math.min(2 ** tries, 100);
        if (clock() + pauseMs > deadlineMs) throw aborted("too many concurrent changes", error);
        await new Promise((resolve) => setTimeout(resolve, pauseMs));
      }
    }
  }

  async function runOnce<T>(begin: string, unit: (tx: Tx) => Awaitable<T>): Promise<T> {
    const client = await pool.connect();
    let broken: Error | undefined;
    try {
      await client.query(begin);
      const tx = new Transaction(executorOf(client));
      try {
        const value = await unit(tx);
        tx.revoke();
        await client.query("COMMIT");
        return value;
      } catch (error) {
        tx.revoke();
        await client.query("ROLLBACK").catch((failure) => {
          broken = failure;
        });
        throw error;
      }
    } catch (error) {
      if (isConnectionLost(error)) broken ??= error as Error;
      throw error;
    } finally {
      client.release(broken);
    }
  }

  function executorOf(client: pg.PoolClient): Executor {
    let executor = executors.get(client);
    if (executor === undefined) {
      executor = createExecutor(drizzle(client));
      executors.set(client, executor);
    }
    return executor;
  }
}

async function prepareDatabase(pool: pg.Pool): Promise<void> {
  const client = await pool.connect();
  try {
    const { rows } = await client.query("SHOW synchronous_commit");
    if (rows[0]?.synchronous_commit === "off") {
      throw new Error("PostgreSQL runs with synchronous_commit = off and would lose acknowledged writes");
    }
    // Several nodes may start on an empty database at the same time.
    await client.query("SELECT pg_advisory_lock($1)", [MIGRATION_LOCK]);
    try {
      await migrate(drizzle(client), { migrationsFolder: MIGRATIONS });
    } finally {
      await client.query("SELECT pg_advisory_unlock($1)", [MIGRATION_LOCK]);
    }
  } finally {
    client.release();
  }
}

// Statements are prepared once per connection; a statement with a name stays prepared in PostgreSQL.
function createExecutor(db: NodePgDatabase): Executor {
  const sql = db as unknown as Sql;
  const tables = schema as unknown as Tables;
  const prepared: (Prepared | undefined)[] = [];
  return {
    counterSlots: COUNTER_SLOTS,
    async rows<Params extends object, Row>(statement: Statement<Params, Row>, params: Params): Promise<Row[]> {
      let ready = prepared[statement.id];
      if (ready === undefined) {
        ready = (statement.build(sql, tables) as Preparable).prepare(`arbor_${statement.id}`) as Prepared;
        prepared[statement.id] = ready;
      }
      const result = await ready.execute(params);
      return Array.isArray(result) ? result : [];
    },
  };
}

interface Prepared {
  execute(params: object): Promise<unknown>;
}

function findErrorCode(error: unknown): string {
  const { code, cause } = (error ?? {}) as { code?: unknown; cause?: unknown };
  if (typeof code === "string") return code;
  return cause === undefined ? "" : findErrorCode(cause);
}

// A conflict is reported as a serialization failure or a deadlock, and sometimes as a violated constraint,
// because of a row that the other transaction inserted. When the unit runs again it sees that row.
function isConflict(error: unknown): boolean {
  return ["40001", "40P01", "23503", "23505"].includes(findErrorCode(error));
}

function isConnectionLost(error: unknown): boolean {
  return /^(08|57P0)|^ECONN|^EPIPE|^ENOTFOUND|^ETIMEDOUT/.test(findErrorCode(error)) || isTerminated(error);
}

function isTerminated(error: unknown): boolean {
  return error instanceof Error && /Connection terminated|timeout exceeded when trying to connect/.test(error.message);
}

// Temporary failures are UNAVAILABLE. All others are defects and are thrown unchanged.
function toApiError(error: unknown): unknown {
  const code = findErrorCode(error);
  if (isConnectionLost(error) || /^(53|58|57014|25P03)/.test(code)) {
    return unavailable("the database cannot be used at the moment", 1000, error);
  }
  return error;
}
