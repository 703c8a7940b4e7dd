// Converts a PostgreSQL database of version 0.10 or 0.11, in one transaction while no server is connected.
import { getTableName } from "drizzle-orm";
import { failedPrecondition } from "../../../kernel/errors.js";
import { tables } from "../../check/database.js";
import { assertNoUnknownObjects } from "../../check/objects.js";
import type { PgTls } from "../../pg/connection.js";
import { vacuumDatabase } from "../../pg/vacuum.js";
import type { MigrationTx } from "../data-migration.js";
import { dataMigrations } from "../data-migrations.js";
import { openPgMigration } from "../open-pg-migration.js";
import type { MigrationProgress } from "../phases.js";
import { schemaRecord } from "../schema-migrations.js";
import { readState, readStateAsync } from "../state.js";
import { conversionNeeded, goneTables } from "./old-database.js";
import { type Conversion, convertRows, countOldRows } from "./rows.js";

export interface PgConversionOptions {
  readonly url: string;
  /** TLS, where the URL does not say it. */
  readonly tls: PgTls;
  readonly onProgress: (progress: MigrationProgress) => void;
  /** Called with who holds a lock that the conversion waits for. */
  readonly onWait: (holder: string) => void;
}

/**
 * Where the old tables are while the new ones are filled: the schema of the record of changes, because the right to create
 * another one is not needed for anything else.
 */
const OLD = "drizzle";

/** What a conversion copies, and which servers must be stopped before. */
export interface PgConversionPlan extends Conversion {
  /** Each with the host that it is connected from. */
  readonly servers: readonly string[];
}

/**
 * Says what a conversion would do, and changes nothing. Servers may run beside it.
 *
 * @throws ApiError FAILED_PRECONDITION when the database cannot be converted
 */
export async function planPgConversion({
  url,
  tls,
}: Pick<PgConversionOptions, "url" | "tls">): Promise<PgConversionPlan> {
  const database = await openPgMigration(url, tls);
  try {
    return await database.read(async (tx) => {
      await requireConvertible(tx);
      const [row] = await tx.query("SELECT current_schema() AS name");
      const counts = await countOldRows({ ...tx, oldSchema: String(row?.name) });
      const rows = [...counts.values()].reduce((sum, n) => sum + n, 0);
      return { tables: counts.size, rows, servers: await listServers(tx) };
    });
  } finally {
    await database.close();
  }
}

/**
 * Converts a database. Where it ends before its commit, nothing has changed.
 *
 * @throws ApiError FAILED_PRECONDITION when the database cannot be converted, or servers are connected to it
 */
export async function convertPg({ url, tls, onProgress, onWait }: PgConversionOptions): Promise<Conversion> {
  const database = await openPgMigration(url, tls, onWait);
  try {
    const names = await database.read(async (tx) => {
      // Before anything is locked, which would keep them waiting.
      await requireConvertible(tx);
      await requireNoServers(tx);
      return listOldTables(tx);
    });
    const converted = await database.write((tx) => convertInTx(tx, names, onProgress));
    await vacuumDatabase({ url, tls, name: "arbor migrate" });
    return converted;
  } finally {
    await database.close();
  }
}

async function convertInTx(
  tx: MigrationTx,
  names: readonly string[],
  onProgress: PgConversionOptions["onProgress"],
): Promise<Conversion> {
  // Before the first query, whose snapshot must show what was committed until then.
  await tx.run(`LOCK TABLE ${names.join(", ")} IN ACCESS EXCLUSIVE MODE`);
  await requireConvertible(tx);
  await requireNoServers(tx);
  await tx.run("DROP TRIGGER advisories_changed ON advisories");
  await tx.run("DROP FUNCTION note_advisory_change()");
  for (const name of names) await tx.run(`ALTER TABLE ${name} SET SCHEMA ${OLD}`);
  await tx.run(`DELETE FROM ${schemaRecord.pg}`);
  // The slices of a table are read in the order of its key, whatever the statistics say.
  for (const plan of ["enable_seqscan", "enable_bitmapscan", "enable_sort"]) await tx.run(`SET LOCAL ${plan} = off`);
  const converted = await convertRows({ ...tx, oldSchema: OLD }, onProgress);
  await tx.run(`DROP TABLE ${names.map((name) => `${OLD}.${name}`).join(", ")}`);
  return converted;
}

async function listOldTables({ query }: MigrationTx): Promise<string[]> {
  const names = [...tables.map(getTableName), ...goneTables];
  const rows = await query(
    `SELECT DISTINCT tablename AS name FROM pg_tables
     WHERE schemaname = current_schema() AND tablename IN (${names.map((name) => `'${name}'`).join(", ")})`,
  );
  return rows.map(({ name }) => `"${name}"`);
}

async function requireConvertible(tx: MigrationTx): Promise<void> {
  const { old } = await readStateAsync(readState("pg", dataMigrations), async (sql) => tx.query(sql));
  if (old === undefined) throw failedPrecondition("DATABASE_VERSION", "the database is of version 1.0 or newer");
  if (!old.isReady) throw conversionNeeded(old);
  const [database] = await tx.query("SELECT current_database() AS name");
  await assertNoUnknownObjects(`the database ${database?.name}`, "pg", (sql) => tx.query(sql));
}

// Nodes and commands that open the store name themselves, and keep connections open while they run.
async function listServers(tx: MigrationTx): Promise<string[]> {
  const servers = await tx.query(
    `SELECT DISTINCT application_name AS name, coalesce(host(client_addr), 'a local socket') AS host
     FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()
     AND application_name ~ '^arbor/' ORDER BY 1, 2`,
  );
  return servers.map(({ name, host }) => `${name}, from ${host}`);
}

async function requireNoServers(tx: MigrationTx): Promise<void> {
  const servers = await listServers(tx);
  if (servers.length === 0) return;
  throw failedPrecondition(
    "SERVER_RUNS",
    `servers use the database: ${servers.join("; ")}; stop all of them, then run the command again`,
  );
}
