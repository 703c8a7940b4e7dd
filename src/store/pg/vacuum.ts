// The end of an import into PostgreSQL.
import type pg from "pg";
import { type CommandConnection, connectForCommand } from "./connection.js";

/**
 * Runs VACUUM and ANALYZE on all tables, outside of any transaction: they mark the pages whose entries lists read without
 * the rows, and move new entries into the index of texts. PostgreSQL does so by itself, but only after some minutes. Tables
 * of other owners are left out with a warning of the server.
 */
export async function vacuumTables(client: pg.ClientBase): Promise<void> {
  const { rows } = await client.query<{ name: string }>(
    "SELECT quote_ident(tablename) AS name FROM pg_tables WHERE schemaname = current_schema()",
  );
  for (const { name } of rows) await client.query(`VACUUM (ANALYZE) ${name}`);
}

/** Runs {@link vacuumTables} over a connection of its own. */
export async function vacuumDatabase(connection: CommandConnection): Promise<void> {
  const client = await connectForCommand(connection);
  try {
    await vacuumTables(client);
  } finally {
    await client.end();
  }
}
