// Opens the store in PostgreSQL. A unit of work gets a connection of the pool. Reads see one snapshot; writes are
// serializable, and run again when they conflict with others, until the deadline of their caller. Several nodes may share the
// database. Nothing in memory says what is stored, so each of them sees what the others committed.
//
// connection.ts sets up each connection: it must reach the primary with commits that are not lost, and the planner of the
// server is kept from plans that depend on its statistics (docs/adr/0018-plain-indexes.md).
import { availableParallelism } from "node:os";
import pg from "pg";
import { type ApiError, aborted, deadlineExceeded, failedPrecondition, unavailable } from "../../kernel/errors.js";
import { type Clock, systemClock } from "../../kernel/time.js";
import type { TraceSpan } from "../../kernel/trace.js";
import { type DatabaseFaultEvent, rewriteSetting } from "../faults.js";
import type { DataMigration } from "../migrate/data-migration.js";
import { dataMigrations } from "../migrate/data-migrations.js";
import { buildCreation, expansionNeeded, needsExpanding, readState, readStateAsync } from "../migrate/state.js";
import { noInstallation } from "../sqlite/data-directory.js";
import type { Store, UnitOptions } from "../store.js";
import type { Tx } from "../transaction.js";
import { Transaction } from "../transaction.js";
import { waitForTurn } from "../unit-turn.js";
import { assertMayOpen, OLDEST_VERSION, VERSION } from "../version.js";
import { createStoreCounts } from "../work-gate.js";
import { type Begin, createDirectAccess, createPooledAccess, type PgAccess } from "./access.js";
import {
  assertReplicated,
  awaitConnection,
  awaitPooledConnection,
  createExecutor,
  findErrorCode,
  isConflict,
  isConnectionLost,
  MIGRATION_LOCK,
  type PgExecutor,
  type PgTls,
  watchReplication,
} from "./connection.js";
import { createPgFaults } from "./faults.js";
import { PipelinedTransaction } from "./pipeline.js";
import { choosePoolSize } from "./pool-size.js";
import { createTurns } from "./turns.js";

const MAX_UNIT_MS = 30_000;
/** When a server that does not end a statement is given up: its machine may have stopped. */
const MAX_RESPONSE_MS = MAX_UNIT_MS + 5_000;
/**
 * After its last row got a number, a unit runs the rest of that statement, idles and commits; the server limits each.
 */
export const LATE_COMMIT_MS = 4 * MAX_UNIT_MS;

/** How many units may wait for a connection: as many calls as wait in the transport. */
const MAX_WAITING = 10_000;

/** How often it is looked whether a fault has ended, in milliseconds. */
const PROBE_MS = 1_000;
/** Takes 128 KiB where the tables are, and gives them back. No log is written of them. */
const ALLOCATE = `BEGIN; CREATE UNLOGGED TABLE arbor_probe AS SELECT repeat('x', 2000) AS x FROM generate_series(1, 64);
  ROLLBACK`;
const INSUFFICIENT_PRIVILEGE = "42501";

/** How to open a PostgreSQL store. */
interface PgOptions {
  /** `postgres://user:password@host:port/database`. */
  readonly url: string;
  /** TLS, where the URL does not say it. */
  readonly tls?: PgTls;
  /** Set where that URL leads to a pooler that gives a session for a transaction: the URL past it. */
  readonly directUrl?: string | undefined;
  /** The maximum number of connections; by default it follows from the cores of the machine. */
  readonly poolSize?: number | undefined;
  readonly clock?: Clock;
  /** Whether an empty database gets its tables; by default it does. */
  readonly create?: boolean;
  /** Called when a fault of the server or of the way to it begins and ends, and each minute while calls fail. */
  readonly onFault?: ((event: DatabaseFaultEvent) => void) | undefined;
  /** The migrations of stored rows; tests replace them. */
  readonly migrations?: readonly DataMigration[];
  /** How long a statement may run, in milliseconds; shorter in tests. */
  readonly maxStatementMs?: number;
  /** How long a statement waits for a server that does not answer, in milliseconds; shorter in tests. */
  readonly maxResponseMs?: number;
}

/**
 * Opens the store in a PostgreSQL database.
 *
 * Writes are SERIALIZABLE and run again after a conflict (40001, 40P01), with jitter, until their
 * deadline. Each read sees one snapshot. All statements go to the primary: connections to a standby are rejected, and
 * those to a server that does not answer are closed.
 *
 * @throws Error when the server is a standby, or may lose acknowledged commits (`synchronous_commit = off`).
 * @throws ApiError FAILED_PRECONDITION when the database is empty and no tables may be created, needs a newer version,
 * or is that of an older version and must be expanded first.
 */
export async function openPg(options: PgOptions): Promise<Store> {
  const { clock = systemClock, poolSize = choosePoolSize(availableParallelism()), create = true } = options;
  const { url, directUrl, migrations = dataMigrations, maxStatementMs = MAX_UNIT_MS } = options;
  const counts = createStoreCounts();
  const limits = { statementMs: maxStatementMs, idleMs: MAX_UNIT_MS };
  const direct = createDirectAccess(limits);
  const access = directUrl === undefined ? direct : createPooledAccess(limits);
  const pool = createPool(url, access, poolSize);
  const executors = new WeakMap<pg.PoolClient, PgExecutor>();
  try {
    if (directUrl === undefined) await prepareDatabase(pool, { migrations, create });
    else await prepareBehindPooler(directUrl);
  } catch (error) {
    await pool.end();
    throw error;
  }
  const turns = createTurns(poolSize, MAX_WAITING);
  const faults = createPgFaults(options.onFault);
  let probing = false;
  // Without calls nothing would end a fault.
  const timer = setInterval(() => {
    if (!faults.counts.isFaulty || probing) return;
    probing = true;
    void probe().finally(() => {
      probing = false;
    });
  }, PROBE_MS).unref();
  return {
    read: (unit, units) => runWithRetries(false, unit, units),
    write: (unit, units) => runWithRetries(true, unit, units),
    lateCommitMs: LATE_COMMIT_MS,
    stats: () => ({
      ...counts,
      waiting: turns.waiting,
      pool: { busy: pool.totalCount - pool.idleCount, idle: pool.idleCount, max: poolSize },
      faults: faults.counts,
    }),
    async check() {
      const oldest = await readOldest().catch((error) => {
        throw unavailable("the database cannot be reached", 1000, faults.toCallError(error));
      });
      assertMayOpen(oldest);
      return faults.counts.isReadOnly ? "read-only" : "ok";
    },
    async close() {
      clearInterval(timer);
      await pool.end();
    },
  };

  // Finds whether the faults have ended: only what writes tells.
  async function probe(): Promise<void> {
    try {
      const turn = waitForTurn({}, clock);
      if (faults.counts.has("full")) await turns.run(turn, allocate);
      await runWithRetries(true, rewriteSetting);
      faults.counts.noteCommit();
    } catch {
      // Noted where it failed.
    }
  }

  // On a full disk a row can be changed where its page has room.
  async function allocate(): Promise<void> {
    let broken: Error | undefined;
    try {
      const client = await pool.connect();
      try {
        await client.query(ALLOCATE);
      } catch (error) {
        await client.query("ROLLBACK").catch((failure) => {
          broken = failure;
        });
        throw error;
      } finally {
        client.release(broken);
      }
    } catch (error) {
      // The role may have no right to create tables.
      if (findErrorCode(error) !== INSUFFICIENT_PRIVILEGE) throw faults.toCallError(error);
    }
  }

  function createPool(url: string, { connection }: PgAccess, size: number): pg.Pool {
    const created = new pg.Pool({
      connectionString: url,
      ...(options.tls !== undefined && { ssl: options.tls }),
      max: size,
      connectionTimeoutMillis: 5_000,
      query_timeout: options.maxResponseMs ?? MAX_RESPONSE_MS,
      keepAlive: true,
      pipeline: true,
      ...connection,
      // `arbor migrate --contract` looks for the nodes of older versions. Up to 0.4.0 they call themselves `arbor`.
      application_name: `arbor/${VERSION}`,
    });
    // Without listeners the error of a connection that runs no statement would end the process. The next statement of its
    // transaction fails.
    created.on("error", () => {});
    created.on("connect", (client) => {
      client.on("error", () => {});
      watchReplication(client);
    });
    return created;
  }

  // What prepares the database locks it for a session.
  async function prepareBehindPooler(directUrl: string): Promise<void> {
    const past = createPool(directUrl, direct, 1);
    try {
      await prepareDatabase(past, { migrations, create });
      const [one, other] = await Promise.all([identify(past), awaitPooledConnection(identify(pool))]);
      if (one !== other) throw failedPrecondition("DATABASE_POOLER", OTHER_DATABASE);
    } finally {
      await past.end();
    }
    await awaitPooledConnection(readOldest());
  }

  function readOldest(): Promise<string | undefined> {
    return runOnce(access.begin(false), false, (tx) => tx.settings.find(OLDEST_VERSION));
  }

  async function runWithRetries<T>(isWrite: boolean, unit: (tx: Tx) => Promise<T>, units?: UnitOptions): Promise<T> {
    const begin = access.begin(isWrite, units?.maxIdleMs);
    const deadlineMs = Math.min(units?.deadlineMs ?? Number.POSITIVE_INFINITY, clock() + MAX_UNIT_MS);
    let conflict: unknown;
    for (let tries = 1; ; tries++) {
      if (clock() > deadlineMs) throw conflict === undefined ? deadlineExceeded() : tooManyConflicts(conflict);
      try {
        // A unit that has begun before is not given up.
        const maxWaitMs = tries === 1 ? units?.maxWaitMs : undefined;
        const turn = waitForTurn({ key: units?.key, maxWaitMs, deadlineMs }, clock);
        return await turns.run(turn, () => runOnce(begin, isWrite, unit, units?.trace));
      } catch (error) {
        if (!isConflict(error)) throw faults.toCallError(error);
        counts.conflicts++;
        conflict = error;
        const pauseMs = Math.random() * Math.min(2 ** tries, 100);
        if (clock() + pauseMs > deadlineMs) throw tooManyConflicts(conflict);
        units?.trace?.addEvent("retry", { "arbor.tries": tries, "db.response.status_code": findErrorCode(error) });
        await new Promise((resolve) => setTimeout(resolve, pauseMs));
      }
    }
  }

  async function runOnce<T>(
    begin: Begin,
    isWrite: boolean,
    unit: (tx: Tx) => Promise<T>,
    trace?: TraceSpan,
  ): Promise<T> {
    const client = await pool.connect();
    trace?.addEvent("begin");
    const transaction = new PipelinedTransaction(client, executorOf(client), begin);
    const tx = new Transaction(transaction);
    let broken: Error | undefined;
    try {
      const value = await unit(tx);
      tx.revoke();
      transaction.close();
      await transaction.assertIntact();
      if (!isWrite) await transaction.leave("COMMIT");
      else {
        const startMs = performance.now();
        await commit(client, trace);
        assertReplicated(client);
        counts.commitSeconds.observe((performance.now() - startMs) / 1000);
      }
      return value;
    } catch (thrown) {
      tx.revoke();
      transaction.close();
      const error = await transaction.findCause(thrown);
      // On a server that does not answer it would wait as long as the statement before.
      if (isConnectionLost(error)) broken = error as Error;
      else if (!isWrite) await transaction.leave("ROLLBACK");
      else {
        await client.query("ROLLBACK").catch((failure) => {
          broken = failure;
        });
      }
      throw error;
    } finally {
      client.release(broken);
    }
  }

  function executorOf(client: pg.PoolClient): PgExecutor {
    let executor = executors.get(client);
    if (executor === undefined) {
      executor = createExecutor(client, { ...access, clock });
      executors.set(client, executor);
    }
    return executor;
  }
}

async function commit(client: pg.PoolClient, trace: TraceSpan | undefined): Promise<void> {
  const span = trace?.startChild("COMMIT", { "db.system.name": "postgresql", "db.operation.name": "COMMIT" });
  try {
    await client.query("COMMIT");
    span?.end();
  } catch (error) {
    span?.fail(error);
    throw error;
  }
}

function tooManyConflicts(conflict: unknown): ApiError {
  return aborted("too many concurrent changes", conflict);
}

// No two servers start in the same microsecond. The number of a database does not change with its name.
const IDENTIFY = `SELECT pg_postmaster_start_time() || ' ' || oid AS id FROM pg_database
  WHERE datname = current_database()`;
const OTHER_DATABASE = "--database-url and --database-direct-url lead to different databases";

async function identify(pool: pg.Pool): Promise<string> {
  const { rows } = await pool.query<{ id: string }>(IDENTIFY);
  return rows[0]?.id ?? "";
}

async function prepareDatabase(pool: pg.Pool, options: Parameters<typeof preparePg>[1]): Promise<void> {
  const client = await awaitConnection(pool.connect());
  try {
    // Several nodes may start on an empty database at the same time.
    await client.query("SELECT pg_advisory_lock($1)", [MIGRATION_LOCK]);
    try {
      await preparePg(client, options);
    } finally {
      await client.query("SELECT pg_advisory_unlock($1)", [MIGRATION_LOCK]);
    }
  } finally {
    client.release();
  }
}

// What happens as a PostgreSQL database is opened for use: an empty one gets its tables, and one that this version
// cannot use is rejected.

/**
 * Prepares a database for use.
 *
 * @param client a connection that holds the advisory lock of migrations
 * @param create whether an empty database gets its tables
 * @throws ApiError FAILED_PRECONDITION when it is empty and may not be created, needs a newer version, or must be
 * expanded first
 */
async function preparePg(
  client: pg.ClientBase,
  { migrations, create }: { readonly migrations: readonly DataMigration[]; readonly create: boolean },
): Promise<void> {
  const state = await readStateAsync(readState("pg", migrations), async (sql) => (await client.query(sql)).rows);
  assertMayOpen(state.oldestVersion);
  if (state.isEmpty && !create) {
    const { rows } = await client.query<{ name: string }>("SELECT current_database() AS name");
    throw noInstallation(`the database ${rows[0]?.name}`, "it has no tables of one");
  }
  if (state.isEmpty) return createTables(client, migrations);
  if (needsExpanding(state)) throw expansionNeeded();
}

async function createTables(client: pg.ClientBase, migrations: readonly DataMigration[]): Promise<void> {
  await client.query("BEGIN");
  try {
    for (const statement of buildCreation("pg", migrations)) await client.query(statement);
    await client.query("COMMIT");
  } catch (error) {
    await client.query("ROLLBACK");
    throw error;
  }
}
