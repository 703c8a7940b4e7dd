// Databases on the PostgreSQL server that scripts/with-pg.mjs starts.
import pg from "pg";
import { parentOf } from "./processes.js";

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

/** The process of the PostgreSQL server that has a database; those of connections are its children. */
export async function findServerPid(databaseUrl: string): Promise<number> {
  const client = new pg.Client({ connectionString: databaseUrl });
  await client.connect();
  const { rows } = await client.query<{ pid: number }>("SELECT pg_backend_pid() AS pid");
  const pid = parentOf(rows[0]?.pid ?? 0);
  await client.end();
  if (pid === undefined) throw new Error("the PostgreSQL server is not on this machine");
  return pid;
}
