// Rebuilds derived indexes, in one transaction while no server writes: a rebuild that ends early changes nothing.
import { join } from "node:path";
import { type SQL, sql } from "drizzle-orm";
import { drizzle } from "drizzle-orm/node-postgres";
import { getTableConfig } from "drizzle-orm/sqlite-core";
import type pg from "pg";
import { failedPrecondition } from "../../kernel/errors.js";
import { connectForCommand, type PgTls } from "../pg/connection.js";
import { createQueries } from "../sqlite/connection.js";
import { holdServeLock } from "../sqlite/data-directory.js";
import { openDatabase } from "../sqlite/driver.js";
import { AVOIDED_PLANS, type CheckDatabase, tables } from "./database.js";
import type { DerivedIndex } from "./derived.js";

/** Where the database is, as the settings say. */
export interface DatabaseLocation {
  /** The data directory; used unless there is a URL. */
  readonly data: string;
  readonly url: string | undefined;
  /** TLS to PostgreSQL, where the URL does not say it. */
  readonly tls?: PgTls;
}

/**
 * Empties and fills the tables of derived indexes. Nothing else is written.
 *
 * @param onProgress shows a text such as `rebuild: 3 of 60 statements`
 * @throws ApiError FAILED_PRECONDITION while a server uses the database
 */
export async function rebuildDerived(
  location: DatabaseLocation,
  indexes: readonly DerivedIndex[],
  onProgress: (text: string) => void,
): Promise<void> {
  const build = (dialect: CheckDatabase["dialect"]) => indexes.flatMap(({ rebuild }) => rebuild(dialect));
  const { url, tls, data } = location;
  await (url === undefined ? rebuildSqlite(data, build("sqlite")) : rebuildPg(url, build("pg")));

  async function rebuildSqlite(directory: string, statements: readonly SQL[]): Promise<void> {
    const release = holdServeLock(directory, "SERVER_RUNS", (path) => `a server uses ${path}: stop it, then repair`);
    try {
      const db = openDatabase(join(directory, "arbor.db"), { fileMustExist: true });
      try {
        db.pragma("synchronous = FULL");
        db.pragma("busy_timeout = 5000");
        db.exec("BEGIN IMMEDIATE");
        const queries = createQueries(db);
        await runAll(statements, async (statement) => void queries.run(statement));
        db.exec("COMMIT");
      } finally {
        // What is not committed is rolled back.
        db.close();
      }
    } finally {
      release();
    }
  }

  async function rebuildPg(url: string, statements: readonly SQL[]): Promise<void> {
    const client = await connectForCommand({ url, tls, name: "arbor check" });
    const db = drizzle(client);
    try {
      await client.query("BEGIN");
      await client.query("SET LOCAL lock_timeout = '5s'");
      // Writers that start from now on wait.
      const names = tables.map((table) => sql.identifier(getTableConfig(table).name));
      await db.execute(sql`lock table ${sql.join(names, sql`, `)} in share row exclusive mode`);
      await requireNoNodes(client);
      for (const plan of AVOIDED_PLANS) await client.query(`SET LOCAL ${plan} = off`);
      await runAll(statements, async (statement) => void (await db.execute(statement)));
      await client.query("COMMIT");
    } finally {
      await client.end();
    }
  }

  async function runAll(statements: readonly SQL[], run: (statement: SQL) => Promise<void>): Promise<void> {
    for (const [i, statement] of statements.entries()) {
      onProgress(`rebuild: ${i} of ${statements.length} statements`);
      await run(statement);
    }
  }
}

// Nodes name their connections, and keep them open while they run.
async function requireNoNodes(client: pg.Client): Promise<void> {
  const { rows } = await client.query(
    `SELECT count(*)::int AS n FROM pg_stat_activity
     WHERE datname = current_database() AND pid <> pg_backend_pid() AND application_name ~ '^arbor(/|$)'`,
  );
  const n = rows[0]?.n ?? 0;
  if (n > 0)
    throw failedPrecondition("SERVER_RUNS", `nodes have ${n} connections to the database: stop them, then repair`);
}
