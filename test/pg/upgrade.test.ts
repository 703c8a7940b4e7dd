// The current service on PostgreSQL databases of released versions. Needs
// TEST_ARBOR_DATABASE_URL.
import pg from "pg";
import { openPgMigration } from "../../src/store/migrate/open-pg-migration.js";
import { expand } from "../../src/store/migrate/phases.js";
import { fixtures, restorePostgres } from "../upgrade/fixtures.js";
import { upgradeSuite } from "../upgrade/upgrade-suite.js";
import { emptyDatabase } from "./databases.js";

for (const fixture of fixtures) {
  const { version, postgres } = fixture;
  if (postgres === undefined) throw new Error(`the fixture of version ${version} has no PostgreSQL database`);
  upgradeSuite(version, postgres, async (statement) => {
    const { sql, masterKeyFile } = restorePostgres(fixture);
    const databaseUrl = await emptyDatabase();
    const client = new pg.Client({ connectionString: databaseUrl });
    await client.connect();
    await client.query(sql);
    if (statement !== undefined) await client.query(`SET search_path TO public; ${statement}`);
    await client.end();
    const database = await openPgMigration(databaseUrl);
    await expand(database);
    await database.close();
    return { databaseUrl, masterKeyFile };
  });
}
