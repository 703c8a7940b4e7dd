// Reads and writes copies in a PostgreSQL database.
import type pg from "pg";
import { failedPrecondition } from "../../kernel/errors.js";
import { dataMigrations } from "../migrate/data-migrations.js";
import { readState, readStateAsync } from "../migrate/state.js";
import { connectForCommand, findErrorCode, MIGRATION_LOCK, type PgTls } from "../pg/connection.js";
import { vacuumTables } from "../pg/vacuum.js";
import { assertStorableInPg, type Cell, type CopiedRow, pgCasts, readPgRow } from "./cells.js";
import { BATCH_CHARACTERS, BATCH_ROWS, type CopyReader, type CopySource, type CopyTarget } from "./databases.js";
import type { CopiedTable } from "./tables.js";

/**
 * Nodes and commands that write connect as `arbor` with a version. A copy has another name, so that it finds only
 * them.
 */
const APPLICATION_NAME = "arbor copy";
/** An arbitrary number for the advisory lock of copies into a database. */
const COPY_LOCK = MIGRATION_LOCK + 1;
/** How long to wait for the lock: the server completes the last statement of a copy whose process was killed. */
const LOCK_TIMEOUT_MS = 30_000;
const LOCK_NOT_AVAILABLE = "55P03";
/** How many rows are read at first. A row may have megabytes. */
const FIRST_ROWS = 32;

/** Where the database is, and how it is reached. */
export interface PgLocation {
  readonly url: string;
  /** TLS, where the URL does not say it. */
  readonly tls?: PgTls;
}

/**
 * Opens a snapshot of a database. While it is open, the server keeps the rows that others delete.
 *
 * @throws Error when the server cannot be reached
 */
export async function openPgSource(location: PgLocation): Promise<CopySource> {
  const watching = await connect(location);
  let db: pg.Client | undefined;
  const close = async () => {
    await db?.end();
    await watching.end();
  };
  try {
    db = await connect(location);
    await db.query("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY");
    const reading = db;
    const query = async (statement: string) => (await reading.query(statement)).rows;
    const state = await readStateAsync(readState("pg", dataMigrations), query);
    // Every command on the host and every change by a request adds a row.
    const readNewest = async (client: pg.Client) =>
      state.isEmpty ? "" : String((await client.query("SELECT max(id) AS id FROM audit")).rows[0]?.id);
    const before = await readNewest(reading);
    return {
      ...createReader(reading),
      state,
      query,
      async setting(name) {
        const { rows } = await reading.query("SELECT value FROM settings WHERE name = $1", [name]);
        return rows[0]?.value;
      },
      assertNotServed: () => assertNotServed(watching),
      hasChanged: async () => (await readNewest(watching)) !== before,
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

/**
 * Opens a database to copy to it. It keeps other copies out, and waits for an earlier one that was killed.
 *
 * @throws ApiError FAILED_PRECONDITION when another copy writes to it; Error when the server cannot be reached
 */
export async function openPgTarget(location: PgLocation): Promise<CopyTarget> {
  const client = await connect(location);
  try {
    await client.query(`SET lock_timeout = ${LOCK_TIMEOUT_MS}`);
    // The connection that writes holds the lock, so that the lock lasts until the server has completed what it wrote.
    await client.query("SELECT pg_advisory_lock($1)", [COPY_LOCK]);
    await client.query("SET lock_timeout = 0");
    return createTarget(client);
  } catch (error) {
    await client.end();
    if (findErrorCode(error) !== LOCK_NOT_AVAILABLE) throw error;
    throw failedPrecondition("COPY_RUNS", "another copy writes to the database: wait until it ends");
  }
}

function createTarget(client: pg.Client): CopyTarget {
  const target: CopyTarget = {
    ...createReader(client),
    query: async (statement) => (await client.query(statement)).rows,
    async changeSchema(statements) {
      await client.query("SELECT pg_advisory_lock($1)", [MIGRATION_LOCK]);
      await target.transaction(async () => {
        for (const statement of statements) await client.query(statement);
      });
      await client.query("SELECT pg_advisory_unlock($1)", [MIGRATION_LOCK]);
    },
    async insert(table, rows) {
      if (rows.length === 0) return;
      for (const row of rows) assertStorableInPg(table, row);
      await insertRows(client, table, rows);
    },
    async clear(tables) {
      const names = tables.map(({ name }) => name).reverse();
      for (const name of names) await client.query(`DELETE FROM ${name}`);
    },
    async setLastNumber({ name, numbered }, last) {
      if (last === 0n) return;
      await client.query("SELECT setval(pg_get_serial_sequence($1, $2), $3)", [name, numbered, String(last)]);
    },
    async transaction(work) {
      await client.query("BEGIN ISOLATION LEVEL REPEATABLE READ");
      try {
        const value = await work();
        await client.query("COMMIT");
        return value;
      } catch (error) {
        await client.query("ROLLBACK").catch(() => {});
        throw error;
      }
    },
    vacuum: () => vacuumTables(client),
    close: () => client.end(),
  };
  return target;
}

async function connect({ url, tls }: PgLocation): Promise<pg.Client> {
  const client = await connectForCommand({ url, tls, name: APPLICATION_NAME });
  await client.query("SET bytea_output = 'hex'");
  return client;
}

function createReader(client: pg.Client): CopyReader {
  const readText = async (statement: string, values: readonly unknown[] = []) => {
    const { rows } = await client.query<Cell[]>({
      text: statement,
      values: [...values],
      rowMode: "array",
      types: { getTypeParser: () => String },
    });
    return rows;
  };
  return {
    dialect: "pg",
    name: `the database ${client.database ?? ""}`,
    async *rows(table) {
      const order = table.key.map(({ name, type }) => `"${name}"${type === "text" ? ' COLLATE "C"' : ""}`);
      const columns = table.columns.map(({ name }) => `"${name}"`).join(", ");
      const select = `SELECT ${columns} FROM ${table.name} ORDER BY ${order.join(", ")}`;
      // A cursor needs a transaction.
      await client.query(`DECLARE copied NO SCROLL CURSOR FOR ${select}`);
      let size = FIRST_ROWS;
      let next = readText(`FETCH ${size} FROM copied`);
      try {
        for (;;) {
          const values = await next;
          if (values.length === 0) break;
          size = chooseSize(size, values);
          // The server reads on while these rows are written.
          next = readText(`FETCH ${size} FROM copied`);
          next.catch(() => {});
          yield values.map((row) => readPgRow(table, row));
        }
      } finally {
        // Fails only after another error, which is thrown.
        await client.query("CLOSE copied").catch(() => {});
      }
    },
    count: async ({ name }) => Number((await readText(`SELECT count(*) FROM ${name}`))[0]?.[0]),
    async lastNumber({ name, numbered }) {
      const [[highest] = []] = await readText(`SELECT coalesce(max("${numbered}"), 0) FROM ${name}`);
      const [[sequence] = []] = await readText("SELECT pg_get_serial_sequence($1, $2)", [name, numbered]);
      const [[assigned] = []] = await readText(
        `SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM ${sequence}`,
      );
      const numbers = [BigInt(highest ?? 0), BigInt(assigned ?? 0)] as const;
      return numbers[0] > numbers[1] ? numbers[0] : numbers[1];
    },
    close: () => client.end(),
  };
}

function chooseSize(size: number, rows: readonly (readonly Cell[])[]): number {
  let characters = 0;
  for (const row of rows) for (const cell of row) characters += cell?.length ?? 0;
  const fitting = Math.floor(BATCH_CHARACTERS / Math.max(characters / rows.length, 1));
  return Math.max(1, Math.min(2 * size, fitting, BATCH_ROWS));
}

async function insertRows(client: pg.Client, table: CopiedTable, rows: readonly CopiedRow[]): Promise<void> {
  const { name, columns } = table;
  const names = columns.map((column) => `"${column.name}"`).join(", ");
  const values = columns.map(({ type }, i) => pgCasts[type](`c${i}`)).join(", ");
  const parameters = columns.map((_, i) => `$${i + 1}::text[]`).join(", ");
  const aliases = columns.map((_, i) => `c${i}`).join(", ");
  try {
    await client.query({
      name: `copy_${name}`,
      text: `INSERT INTO ${name} (${names}) SELECT ${values} FROM unnest(${parameters}) AS r(${aliases})`,
      values: columns.map((_, i) => rows.map((row) => row[i] ?? null)),
    });
  } catch (error) {
    throw new Error(`table ${name}: ${(error as Error).message}`, { cause: error });
  }
}

async function assertNotServed(client: pg.Client): Promise<void> {
  const { rows } = await client.query<{ name: string; host: string }>(
    "SELECT DISTINCT application_name AS name, coalesce(host(client_addr), 'a local socket') AS host " +
      "FROM pg_stat_activity WHERE datname = current_database() AND application_name ~ '^arbor(/|$)'",
  );
  if (rows.length === 0) return;
  const nodes = rows.map(({ name, host }) => `${name}, from ${host}`).join("; ");
  throw failedPrecondition("SERVER_RUNS", `nodes use the database (${nodes}): stop them, then copy`);
}
