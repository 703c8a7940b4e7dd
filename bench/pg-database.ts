// Databases on the PostgreSQL server that scripts/with-pg.mjs starts.
import pg from "pg";

let made = 0;

/** Creates an empty database and returns its URL. */
export async function createDatabase(): Promise<string> {
  const server = process.env.TEST_ARBOR_DATABASE_URL;
  if (server === undefined) throw new Error("start it by scripts/with-pg.mjs");
  const name = `bench_${process.pid}_${made++}`;
  const client = new pg.Client({ connectionString: server });
  await client.connect();
  await client.query(`CREATE DATABASE ${name}`);
  await client.end();
  const url = new URL(server);
  url.pathname = `/${name}`;
  return url.href;
}
