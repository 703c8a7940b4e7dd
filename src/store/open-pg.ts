import { fileURLToPath } from "node:url";
import { drizzle, type NodePgDatabase } from "drizzle-orm/node-postgres";
import { migrate } from "drizzle-orm/node-postgres/migrator";
import pg from "pg";
import { type Clock, systemClock } from "../kernel/clock.js";
import { aborted, deadlineExceeded, unavailable } from "../kernel/errors.js";
import type { Awaitable, Store, Tx, UnitOptions } from "./port.js";
import * as schema from "./schema-pg.js";
import type { Executor, Preparable, Sql, Statement } from "./statement.js";
import type { Tables } from "./tables.js";
import { Transaction } from "./transaction.js";

const MIGRATIONS = fileURLToPath(new URL("./migrations/pg", import.meta.url));
/** Any number will do, so long as no other program takes the same one. */
const MIGRATION_LOCK = 0x4172626f;
/** Spreads writers that count under the same group over rows, so that they rarely collide. */
const COUNTER_SLOTS = 32;
const MAX_UNIT_MS = 30_000;
/** Behind the number of its last row a unit has that statement, idle time and the commit, each cut off by the server. */
const LATE_COMMIT_MS = 4 * MAX_UNIT_MS;

/** How to open a PostgreSQL store. */
export interface PgOptions {
  /** `postgres://user:password@host:port/database`. */
  readonly url: string;
  /** Connections to open at most. */
  readonly poolSize?: number;
  readonly clock?: Clock;
}

/**
 * Opens the store in a PostgreSQL database, bringing its schema up to date.
 *
 * Writes are SERIALIZABLE and run again when they lose (40001, 40P01), with jitter, until their
 * deadline; reads see one snapshot. Only the primary is ever asked.
 *
 * @throws Error when the server does not keep acknowledged commits (`synchronous_commit = off`).
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
  // Without a listener an idle connection that breaks would end the process.
  pool.on("error", () => {});
  try {
    await prepareDatabase(pool);
  } catch (error) {
    await pool.end();
    throw error;
  }
  const connections = new WeakMap<pg.PoolClient, Executor>();

  return {
    read: (unit, units) => attempt("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", unit, units),
    write: (unit, units) => attempt("BEGIN ISOLATION LEVEL SERIALIZABLE", unit, units),
    lateCommitMs: LATE_COMMIT_MS,
    async check() {
      await pool.query("SELECT 1 FROM settings LIMIT 1").catch((error) => {
        throw unavailable("the database cannot be reached", 1000, error);
      });
    },
    close: () => pool.end(),
  };

  async function attempt<T>(begin: string, unit: (tx: Tx) => Awaitable<T>, units?: UnitOptions): Promise<T> {
    const deadlineMs = Math.min(units?.deadlineMs ?? Number.POSITIVE_INFINITY, clock() + MAX_UNIT_MS);
    for (let tries = 1; ; tries++) {
      if (clock() > deadlineMs) throw deadlineExceeded();
      try {
        return await once(begin, unit);
      } catch (error) {
        if (!lost(error)) throw translated(error);
        const pauseMs = Math.random() * Math.min(2 ** tries, 100);
        if (clock() + pauseMs > deadlineMs) throw aborted("too many concurrent changes", error);
        await new Promise((resolve) => setTimeout(resolve, pauseMs));
      }
    }
  }

  async function once<T>(begin: string, unit: (tx: Tx) => Awaitable<T>): Promise<T> {
    const client = await pool.connect();
    let broken: Error | undefined;
    try {
      await client.query(begin);
      const tx = new Transaction(connectionOf(client));
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
      if (connectionLost(error)) broken ??= error as Error;
      throw error;
    } finally {
      client.release(broken);
    }
  }

  function connectionOf(client: pg.PoolClient): Executor {
    let connection = connections.get(client);
    if (connection === undefined) {
      connection = connectionTo(drizzle(client));
      connections.set(client, connection);
    }
    return connection;
  }
}

async function prepareDatabase(pool: pg.Pool): Promise<void> {
  const client = await pool.connect();
  try {
    const { rows } = await client.query("SHOW synchronous_commit");
    if (rows[0]?.synchronous_commit === "off") {
      throw new Error("PostgreSQL runs with synchronous_commit = off and would lose acknowledged writes");
    }
    // Several nodes may start at once on an empty database.
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

// Statements are prepared once per connection; a name makes PostgreSQL keep them.
function connectionTo(db: NodePgDatabase): Executor {
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

function codeOf(error: unknown): string {
  const { code, cause } = (error ?? {}) as { code?: unknown; cause?: unknown };
  if (typeof code === "string") return code;
  return cause === undefined ? "" : codeOf(cause);
}

// Losing a race shows as a serialization failure or a deadlock, but now and then as the constraint
// that the winner's row would break; run again, the unit sees that row and gives its own answer.
function lost(error: unknown): boolean {
  return ["40001", "40P01", "23503", "23505"].includes(codeOf(error));
}

function connectionLost(error: unknown): boolean {
  return /^(08|57P0)|^ECONN|^EPIPE|^ENOTFOUND|^ETIMEDOUT/.test(codeOf(error)) || isTerminated(error);
}

function isTerminated(error: unknown): boolean {
  return error instanceof Error && /Connection terminated|timeout exceeded when trying to connect/.test(error.message);
}

// Whatever may pass by itself is UNAVAILABLE; the rest are defects and stay as they are.
function translated(error: unknown): unknown {
  const code = codeOf(error);
  if (connectionLost(error) || /^(53|58|57014|25P03)/.test(code)) {
    return unavailable("the database cannot be used at the moment", 1000, error);
  }
  return error;
}
