// Opens a PostgreSQL database for migrations. Nodes of this version and of the one before may use it at the same time.
import { setTimeout as sleep } from "node:timers/promises";
import { unavailable } from "../../kernel/errors.js";
import {
  connectForCommand,
  createExecutor,
  findErrorCode,
  isConflict,
  MIGRATION_LOCK,
  type PgTls,
} from "../pg/connection.js";
import { isOlder, VERSION } from "../version.js";
import type { MigrationTx } from "./data-migration.js";
import { MAX_WAIT_MS, type MigrationDatabase } from "./data-migration.js";

/** How long a statement waits for a lock. Statements of the nodes wait behind it meanwhile. In milliseconds. */
const LOCK_TIMEOUT_MS = 1_000;
const MAX_PAUSE_MS = 100;
/** How often a wait is looked at, and how often it is reported. */
const WATCH_MS = 300;
const REPORT_MS = 5_000;
const LOCK_NOT_AVAILABLE = "55P03";
/** A constraint that is still violated after so many tries is violated by the migration itself. */
const MAX_CONSTRAINT_TRIES = 10;

/**
 * Opens the database at `url` for migrations.
 *
 * @param tls TLS, where the URL does not say it
 * @param onWait called with who holds a lock that a change waits for, when it has waited for a second, and every few
 * seconds from then on
 * @throws Error when it cannot be reached
 */
export async function openPgMigration(
  url: string,
  tls?: PgTls,
  onWait: (holder: string) => void = () => {},
): Promise<MigrationDatabase> {
  const client = await connectForCommand({ url, tls, name: "arbor migrate" });
  await client.query(`SET lock_timeout = ${LOCK_TIMEOUT_MS}`);
  const { rows: names } = await client.query<{ name: string; pid: number }>(
    "SELECT current_database() AS name, pg_backend_pid() AS pid",
  );
  const tx: MigrationTx = {
    ...createExecutor(client),
    dialect: "pg",
    run: async (statement, values = []) => (await client.query(statement, [...values])).rowCount ?? 0,
    query: async (statement, values = []) => (await client.query(statement, [...values])).rows,
  };

  return {
    dialect: "pg",
    name: `the database ${names[0]?.name}`,
    read: (unit) => runTransaction("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", unit),
    write: (unit) => writeWithRetries(() => runTransaction("BEGIN ISOLATION LEVEL SERIALIZABLE", unit)),
    async findOlderServers() {
      const { rows } = await client.query<{ name: string; host: string }>(
        "SELECT DISTINCT application_name AS name, coalesce(host(client_addr), 'a local socket') AS host " +
          "FROM pg_stat_activity WHERE datname = current_database() AND application_name ~ '^arbor/'",
      );
      return rows
        .filter(({ name }) => isOlder(name.slice("arbor/".length), VERSION))
        .map(({ name, host }) => `${name}, from ${host}`);
    },
    close: () => client.end(),
  };

  async function runTransaction<T>(begin: string, unit: (tx: MigrationTx) => Promise<T>): Promise<T> {
    await client.query(begin);
    try {
      const value = await unit(tx);
      await client.query("COMMIT");
      return value;
    } catch (error) {
      await client.query("ROLLBACK").catch(() => {});
      throw error;
    }
  }

  async function writeWithRetries<T>(run: () => Promise<T>): Promise<T> {
    const deadlineMs = performance.now() + MAX_WAIT_MS;
    let watch: Awaited<ReturnType<typeof watchHolders>> | undefined;
    try {
      for (let tries = 1; ; tries++) {
        try {
          return await withLock(run);
        } catch (error) {
          const isLate = performance.now() > deadlineMs;
          const isLocked = findErrorCode(error) === LOCK_NOT_AVAILABLE;
          if (isLocked && isLate)
            throw unavailable(`the change waited too long for ${watch?.holder()}`, undefined, error);
          if (!isTemporary(error, tries) || isLate) throw error;
          if (isLocked) watch ??= await watchHolders({ url, tls, pid: names[0]?.pid ?? 0, onWait });
        }
        await sleep(Math.random() * Math.min(2 ** tries, MAX_PAUSE_MS));
      }
    } finally {
      await watch?.stop();
    }
  }

  // Taken before the transaction begins: its snapshot must show what the process that held the lock before committed.
  async function withLock<T>(run: () => Promise<T>): Promise<T> {
    await client.query("SELECT pg_advisory_lock($1)", [MIGRATION_LOCK]);
    try {
      return await run();
    } finally {
      await client.query("SELECT pg_advisory_unlock($1)", [MIGRATION_LOCK]).catch(() => {});
    }
  }
}

const HOLDERS = `SELECT s.pid, s.application_name AS name, coalesce(host(s.client_addr), 'a local socket') AS host, s.state,
  extract(epoch FROM clock_timestamp() - s.xact_start)::int AS seconds
  FROM unnest(pg_blocking_pids($1)) AS b (pid) JOIN pg_stat_activity AS s ON s.pid = b.pid ORDER BY s.xact_start LIMIT 3`;

interface HolderRow {
  readonly pid: number;
  readonly name: string;
  readonly host: string;
  readonly state: string | null;
  readonly seconds: number | null;
}

/** Finds over a connection of its own who holds what another session waits for. */
async function watchHolders({
  url,
  tls,
  pid,
  onWait,
}: {
  readonly url: string;
  readonly tls: PgTls;
  readonly pid: number;
  readonly onWait: (holder: string) => void;
}) {
  const observer = await connectForCommand({ url, tls, name: "arbor migrate" });
  let holder = "the lock of another session";
  let reportedMs = Number.NEGATIVE_INFINITY;
  let asking: Promise<void> = Promise.resolve();
  const timer = setInterval(() => {
    asking = ask().catch(() => {});
  }, WATCH_MS);
  return {
    holder: () => holder,
    async stop() {
      clearInterval(timer);
      await asking;
      await observer.end();
    },
  };

  async function ask(): Promise<void> {
    const { rows } = await observer.query<HolderRow>(HOLDERS, [pid]);
    // Between two tries nothing is waited for.
    if (rows.length === 0) return;
    holder = rows.map(describeHolder).join(" and ");
    if (performance.now() - reportedMs < REPORT_MS) return;
    reportedMs = performance.now();
    onWait(holder);
  }
}

function describeHolder({ pid, name, host, state, seconds }: HolderRow): string {
  const who = `${name === "" ? "a program without a name" : name}, from ${host}`;
  const since = seconds === null ? "" : ` for ${seconds} s`;
  return `a lock that session ${pid} holds (${who}, ${state ?? "in an unknown state"}${since})`;
}

function isTemporary(error: unknown, tries: number): boolean {
  const code = findErrorCode(error);
  if (code.startsWith("23") && tries >= MAX_CONSTRAINT_TRIES) return false;
  return isConflict(error) || code === LOCK_NOT_AVAILABLE;
}
