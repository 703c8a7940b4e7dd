// Databases on the server of TEST_ARBOR_DATABASE_URL, one for each caller.
import pg from "pg";
import { openPg } from "../../src/store/pg/open.js";

// PostgreSQL 15 and newer know it: files are copied, in about 20 ms. To log each page instead takes three times that.
const BY_COPY = "STRATEGY FILE_COPY";

let count = 0;
let template: Promise<string> | undefined;

/** Creates a database without tables and returns its URL. */
export function emptyDatabase(): Promise<string> {
  return createDatabase(BY_COPY);
}

/**
 * Creates a database with the tables of a new installation and returns its URL. It takes a twentieth of what the
 * migrations take.
 */
export async function newDatabase(): Promise<string> {
  template ??= createTemplate();
  return copyDatabase(await template);
}

/** Creates a copy of the database at `url`, to which nobody is connected, and returns its URL. */
export function copyDatabase(url: string): Promise<string> {
  return createDatabase(`TEMPLATE ${new URL(url).pathname.slice(1)} ${BY_COPY}`);
}

/** Does some work over a connection of its own. */
export async function withClient<T>(url: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}

async function createTemplate(): Promise<string> {
  const url = await emptyDatabase();
  await (await openPg({ url })).close();
  return url;
}

async function createDatabase(options: string): Promise<string> {
  const server = process.env.TEST_ARBOR_DATABASE_URL;
  if (server === undefined) throw new Error("TEST_ARBOR_DATABASE_URL is not set; run npm run test:pg");
  const name = `arbor_${process.pid}_${count++}`;
  await withClient(server, (client) => client.query(`CREATE DATABASE ${name} ${options}`));
  const url = new URL(server);
  url.pathname = `/${name}`;
  return url.href;
}
