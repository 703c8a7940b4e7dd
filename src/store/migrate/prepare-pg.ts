// What happens as a PostgreSQL database is opened for use: an empty one gets its tables, and one that this version
// cannot use is rejected.
import type pg from "pg";
import { noInstallation } from "../find-installation.js";
import { assertMayOpen } from "../version.js";
import type { DataMigration } from "./data-migration.js";
import { expansionNeeded, needsExpanding, readState, readStateAsync } from "./state.js";
import { buildCreation } from "./statements.js";

/**
 * Prepares a database for use.
 *
 * @param client a connection that holds the advisory lock of migrations
 * @param create whether an empty database gets its tables
 * @throws ApiError FAILED_PRECONDITION when it is empty and may not be created, needs a newer version, or must be
 * expanded first
 */
export async function preparePg(
  client: pg.ClientBase,
  { migrations, create }: { readonly migrations: readonly DataMigration[]; readonly create: boolean },
): Promise<void> {
  const state = await readStateAsync(readState("pg", migrations), async (sql) => (await client.query(sql)).rows);
  assertMayOpen(state.oldestVersion);
  if (state.isEmpty && !create) {
    const { rows } = await client.query<{ name: string }>("SELECT current_database() AS name");
    throw noInstallation(`the database ${rows[0]?.name}`, "it has no tables of one");
  }
  if (state.isEmpty) return createTables(client, migrations);
  if (needsExpanding(state)) throw expansionNeeded();
}

async function createTables(client: pg.ClientBase, migrations: readonly DataMigration[]): Promise<void> {
  await client.query("BEGIN");
  try {
    for (const statement of buildCreation("pg", migrations)) await client.query(statement);
    await client.query("COMMIT");
  } catch (error) {
    await client.query("ROLLBACK");
    throw error;
  }
}
