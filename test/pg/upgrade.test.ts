// The current service on PostgreSQL databases of released versions. Needs
// TEST_ARBOR_DATABASE_URL.
import assert from "node:assert/strict";
import { runCommand } from "../support/command.js";
import { fixtures, restorePostgres } from "../upgrade/fixtures.js";
import { upgradeSuite } from "../upgrade/upgrade-suite.js";
import { emptyDatabase, withClient } from "./databases.js";

for (const fixture of fixtures) {
  const { version, postgres } = fixture;
  if (postgres === undefined) throw new Error(`the fixture of version ${version} has no PostgreSQL database`);
  upgradeSuite(version, postgres, async () => {
    const { sql, masterKeyFile } = restorePostgres(fixture);
    const url = await emptyDatabase();
    await withClient(url, (client) => client.query(sql));
    const flags = ["--database-url", url, "--master-key-file", masterKeyFile];
    const { code, stderr } = await runCommand(["migrate", "--expand", "--contract", ...flags]);
    assert.equal(code, 0, stderr);
    return { databaseUrl: url, masterKeyFile };
  });
}
