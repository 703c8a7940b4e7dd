// Databases on the server of TEST_ARBOR_DATABASE_URL, one for each caller.
import pg from "pg";
import { openPg } from "../../src/store/open-pg.js";

// Copies the files of the template. That takes PostgreSQL 20 ms; the other way, which logs each page, takes three times that.
const BY_COPY = "STRATEGY FILE_COPY";

let count = 0;
let template: Promise<string> | undefined;

/** Creates a database without tables and returns its URL. */
export function emptyDatabase(): Promise<string> {
  return createDatabase(BY_COPY);
}

/** Creates a database with the tables of a new installation and returns its URL. It takes a twentieth of what the migrations take. */
export async function newDatabase(): Promise<string> {
  template ??= createTemplate();
  return createDatabase(`TEMPLATE ${await template} ${BY_COPY}`);
}

async function createTemplate(): Promise<string> {
  const url = await emptyDatabase();
  await (await openPg({ url })).close();
  return new URL(url).pathname.slice(1);
}

async function createDatabase(options: string): Promise<string> {
  const server = process.env.TEST_ARBOR_DATABASE_URL;
  if (server === undefined) throw new Error("TEST_ARBOR_DATABASE_URL is not set; run npm run test:pg");
  const name = `arbor_${process.pid}_${count++}`;
  const client = new pg.Client({ connectionString: server });
  await client.connect();
  await client.query(`CREATE DATABASE ${name} ${options}`);
  await client.end();
  const url = new URL(server);
  url.pathname = `/${name}`;
  return url.href;
}
