// Backups of databases of released versions: restored, they are migrated by the next start and answer as before.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { isOlder } from "../../src/store/version.js";
import { attack } from "../audit/log-kit.js";
import { runCommand } from "../support/command.js";
import { isCampaign } from "../support/scale.js";
import { tempDir } from "../support/temp-dir.js";
import { fixtures, restoreSqlite } from "./fixtures.js";
import { compareResponses, startUpgraded } from "./upgrade-suite.js";

/** The first version with the schema of this one: a migration that is added makes it the next version. */
const FIRST_WITH_SCHEMA = "0.11.0";

/** sqlite.test.ts migrates them all; what a backup adds depends on whether the database is an older one. */
const chosen = fixtures.filter((_, i) => isCampaign || i === 0 || i === fixtures.length - 1);

for (const fixture of chosen) {
  const { version, sqlite } = fixture;
  test(`a backup of a database of version ${version} restores, migrates and answers`, async (t) => {
    const data = restoreSqlite(fixture);
    const before = readFileSync(join(data, "arbor.db"));
    const [backup, to] = [join(tempDir(), "backup"), join(tempDir(), "data")];
    const made = await runCommand(["backup", backup, "--data", data, "--with-master-key"]);
    assert.equal(made.code, 0, made.stderr);
    assert.deepEqual(readFileSync(join(data, "arbor.db")), before, "a backup migrates nothing");
    const restored = await runCommand(["restore", backup, "--data", to]);
    assert.equal(restored.code, 0, restored.stderr);
    const isOld = /^the database is that of an older version: the next start migrates it$/m.test(restored.stdout);
    assert.equal(isOld, isOlder(version, FIRST_WITH_SCHEMA), restored.stdout);

    const harness = await startUpgraded({ data: to });
    t.after(() => harness.stop());
    assert.deepEqual(await compareResponses(harness, sqlite.owner, sqlite.answers), []);
    const log = await runCommand(["audit", "list", "--root", "", "--data", to]);
    assert.match(log.stdout, / arbor\.database\.restored\.v1 /);
    const checked = await runCommand(["check", "--data", to]);
    assert.equal(checked.code, 0, checked.stdout);
  });
}

test("a backup of another database gives other answers", async (t) => {
  const [fixture] = fixtures;
  assert.ok(fixture);
  const data = restoreSqlite(fixture);
  attack(data, "UPDATE groups SET description = 'changed' WHERE name = 'storage'");
  const [backup, to] = [join(tempDir(), "backup"), join(tempDir(), "data")];
  assert.equal((await runCommand(["backup", backup, "--data", data, "--with-master-key"])).code, 0);
  assert.equal((await runCommand(["restore", backup, "--data", to])).code, 0);
  const harness = await startUpgraded({ data: to });
  t.after(() => harness.stop());
  assert.ok((await compareResponses(harness, fixture.sqlite.owner, fixture.sqlite.answers)).length > 0);
});
