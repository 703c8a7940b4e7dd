// Opens a snapshot of a PostgreSQL store, beside other nodes or without them.
import { sql } from "drizzle-orm";
import { drizzle } from "drizzle-orm/node-postgres";
import { connectForCommand, createExecutor, type PgTls } from "../pg-connection.js";
import type { CheckDatabase } from "./database.js";
import { createSnapshotStore } from "./database.js";
import { AVOIDED_PLANS } from "./repair.js";

/**
 * Opens a snapshot of a database. While it is open, the server keeps the rows that others delete.
 *
 * @param url `postgres://user:password@host:port/database`
 * @param tls TLS, where the URL does not say it
 * @throws Error when the server cannot be reached
 */
export async function readPg(url: string, tls?: PgTls): Promise<CheckDatabase> {
  const client = await connectForCommand({ url, tls, name: "arbor check" });
  const db = drizzle(client);
  const all: CheckDatabase["all"] = async <Row extends object>(query: Parameters<typeof db.execute>[0]) =>
    (await db.execute(query)).rows as unknown as Row[];
  try {
    await client.query("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY");
    for (const plan of AVOIDED_PLANS) await client.query(`SET LOCAL ${plan} = off`);
    return {
      dialect: "pg",
      name: `the database ${client.database ?? ""}`,
      store: createSnapshotStore(createExecutor(client)),
      all,
      // After an error PostgreSQL rejects all statements up to the savepoint.
      async tryAll(query) {
        await db.execute(sql`savepoint attempt`);
        try {
          return await all(query);
        } catch (error) {
          await db.execute(sql`rollback to savepoint attempt`);
          throw error;
        }
      },
      close: () => client.end(),
    };
  } catch (error) {
    await client.end();
    throw error;
  }
}
