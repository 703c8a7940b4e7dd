import type pg from "pg";

let count = 0;

/** Creates an empty database on the server under test and returns its URL. */
export async function emptyDatabase(driver: typeof pg): Promise<string> {
  const server = process.env.TEST_ARBOR_DATABASE_URL;
  if (server === undefined) throw new Error("TEST_ARBOR_DATABASE_URL is not set; run npm run test:pg");
  const name = `arbor_${process.pid}_${count++}`;
  const client = new driver.Client({ connectionString: server });
  await client.connect();
  await client.query(`CREATE DATABASE ${name}`);
  await client.end();
  const url = new URL(server);
  url.pathname = `/${name}`;
  return url.href;
}
