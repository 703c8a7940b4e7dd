// The current service on SQLite databases of released versions. On PostgreSQL: test/pg/.
import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { openSqliteMigration } from "../../src/store/migrate/open-sqlite-migration.js";
import { expand } from "../../src/store/migrate/phases.js";
import { classifyTag } from "../../src/store/registry/tag-families.js";
import { openDatabase } from "../../src/store/sqlite/driver.js";
import { isOlder } from "../../src/store/version.js";
import { attack } from "../audit/log-kit.js";
import { inconsistenciesIn } from "../support/consistency.js";
import { findDifferences, fixtures, restoreSqlite } from "./fixtures.js";
import { compareResponses, startUpgraded, upgradeSuite } from "./upgrade-suite.js";

for (const fixture of fixtures) {
  const { version, sqlite } = fixture;
  upgradeSuite(version, sqlite, async () => ({ data: restoreSqlite(fixture) }));

  test(`the database of version ${version} with one row changed gives other answers`, async (t) => {
    const data = restoreSqlite(fixture);
    attack(data, "UPDATE groups SET description = 'changed' WHERE name = 'storage'");
    const harness = await startUpgraded({ data });
    t.after(() => harness.stop());
    const found = await compareResponses(harness, sqlite.owner, sqlite.answers);
    assert.ok(
      found.some((one) => /^GET \/iam\/v2beta1\/groups\?page_size=200 .*"changed" instead of "three levels/.test(one)),
      found.join("\n"),
    );
  });
}

// Since version 1.12 servers write the families that names have now.
for (const fixture of fixtures.filter(({ version }) => isOlder(version, "1.12.0"))) {
  test(`a tag of version ${fixture.version} that is a snapshot of a package build comes to its family`, async () => {
    const data = restoreSqlite(fixture);
    const names = ["1.0_git20260131-r0", "1.0_git20260131"];
    // The version before has them in its families of usual tags and of dates.
    attack(data, `UPDATE tags SET name = '${names[0]}' WHERE name = '1.0'`);
    attack(data, `UPDATE tags SET name = '${names[1]}' WHERE name = '1.0-20260131'`);
    const database = openSqliteMigration({ directory: data, mode: "update" });
    await expand(database);
    await database.close();
    const db = openDatabase(join(data, "arbor.db"));
    const read = db.prepare("SELECT family FROM tags WHERE name = ?").pluck();
    const families = names.map((name) => read.get(name));
    const inconsistencies = inconsistenciesIn(db);
    db.close();
    assert.deepEqual(families, names.map(classifyTag));
    assert.deepEqual(inconsistencies, []);
  });
}

test("there are fixtures", () => {
  assert.deepEqual(
    fixtures.slice(0, 2).map(({ version }) => version),
    ["1.0.0", "1.1.0"],
  );
});

const changes: readonly { reason: string; actual: unknown; found: readonly string[] }[] = [
  { reason: "the same", actual: { a: 1, list: [{ b: "x" }, { b: "y" }] }, found: [] },
  { reason: "new fields", actual: { a: 1, new: 2, list: [{ b: "x", new: [] }, { b: "y" }] }, found: [] },
  { reason: "a field less", actual: { list: [{ b: "x" }, { b: "y" }] }, found: [".a: undefined instead of 1"] },
  {
    reason: "another type",
    actual: { a: "1", list: [{ b: "x" }, { b: "y" }] },
    found: ['.a: "1" instead of 1'],
  },
  {
    reason: "an element less",
    actual: { a: 1, list: [{ b: "x" }] },
    found: [".list: 1 elements instead of 2", ".list[1]: no object"],
  },
  {
    reason: "an element more",
    actual: { a: 1, list: [{ b: "x" }, { b: "y" }, {}] },
    found: [".list: 3 elements instead of 2"],
  },
];

for (const { reason, actual, found } of changes) {
  test(`comparison: ${reason}`, () => {
    assert.deepEqual(findDifferences({ a: 1, list: [{ b: "x" }, { b: "y" }] }, actual), found);
  });
}

const role = (name: string, capabilities: readonly string[], more: object = {}) => {
  return { uid: name, name, description: `${name} Role (built-in)`, capabilities, ...more };
};
const roles = [role("owner", ["a", "b"]), { uid: "custom", description: "", capabilities: ["a"] }];

const gains: readonly { reason: string; actual: object; found: readonly string[] }[] = [
  {
    reason: "a built-in role more",
    actual: { roles: [role("new", ["c"]), ...roles], totalCount: "3" },
    found: [],
  },
  {
    reason: "a capability more of a built-in role",
    actual: { roles: [role("owner", ["a", "c", "b"], { updateTime: "now" }), roles[1]], totalCount: "2" },
    found: [],
  },
  {
    reason: "a capability less of a built-in role",
    actual: { roles: [role("owner", ["b", "c"]), roles[1]], totalCount: "2" },
    found: [
      ".roles[0].capabilities: 1 elements instead of 2",
      '.roles[0].capabilities[0]: "b" instead of "a"',
      '.roles[0].capabilities[1]: undefined instead of "b"',
    ],
  },
  {
    reason: "a built-in role less",
    actual: { roles: [roles[1]], totalCount: "1" },
    found: [
      ".roles: 1 elements instead of 2",
      '.roles[0].uid: "custom" instead of "owner"',
      '.roles[0].name: undefined instead of "owner"',
      '.roles[0].description: "" instead of "owner Role (built-in)"',
      ".roles[0].capabilities: 1 elements instead of 2",
      '.roles[0].capabilities[1]: undefined instead of "b"',
      ".roles[1]: no object",
      '.totalCount: "1" instead of "2"',
    ],
  },
  {
    reason: "a capability more of a custom role",
    actual: { roles: [roles[0], { uid: "custom", description: "", capabilities: ["a", "c"] }], totalCount: "2" },
    found: [".roles[1].capabilities: 2 elements instead of 1"],
  },
];

for (const { reason, actual, found } of gains) {
  test(`comparison: ${reason}`, () => {
    assert.deepEqual(findDifferences({ roles, totalCount: "2" }, actual), found);
  });
}
