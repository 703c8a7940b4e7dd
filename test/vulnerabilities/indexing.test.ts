// The background work that indexes advisories, and writers that know nothing of the index.
import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, it } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { createJobs } from "../../src/jobs/jobs.js";
import { openDatabase } from "../../src/store/sqlite/driver.js";
import { openSqlite } from "../../src/store/sqlite/open.js";
import type { Store } from "../../src/store/store.js";
import { createAdvisoryIndexing } from "../../src/vulnerabilities/advisories/advisory.js";
import { childUid } from "../support/rows.js";
import { memoryDir } from "../support/temp-dir.js";
import { waitUntil } from "../support/wait-until.js";
import { randomAdvisories, storeModel } from "./advisory-model.js";
import { type AdvisoryWorld, advisoryWorld, ours, theirs } from "./advisory-world.js";

const COUNT = 90;
const directory = memoryDir();
let store: Store;
let world: AdvisoryWorld;
let everybody: string;
before(async () => {
  store = openSqlite({ directory });
  world = await advisoryWorld(store);
  everybody = await world.reader(ours, theirs);
  await store.write(async (tx) => {
    for (const [i, one] of randomAdvisories(COUNT, 3).entries()) await storeModel(tx, one, i);
  });
});
after(() => store.close());

const hasChanges = () => store.read((tx) => tx.advisories.hasChanges());
const totalOf = async (artifactType: string) =>
  Number((await world.list(everybody, { artifactTypes: [artifactType] })).totalCount);
const countIndexed = () => {
  const file = openDatabase(join(directory, "arbor.db"), { readonly: true });
  const count = file.prepare("SELECT count(*) FROM advisory_entries").pluck().get();
  file.close();
  return count;
};
const failUnexpectedly = (problem: string, error: unknown) => assert.fail(`${problem}: ${error}`);

const NAME = "advisory-index";
/** The job alone on a node. */
function createTestJobs(of: Store, onProblem: (problem: string, error: unknown) => void) {
  const jobs = createJobs({ store: of, holder: "test", onProblem, random: () => 0 });
  jobs.add(createAdvisoryIndexing(of));
  return jobs;
}

it("indexes all that changed when it starts", async () => {
  assert.equal(countIndexed(), 0);
  const jobs = createTestJobs(store, failUnexpectedly);
  jobs.start();
  await waitUntil(async () => !(await hasChanges()));
  await jobs.stop();
  assert.equal(await hasChanges(), false);
  assert.equal(countIndexed(), COUNT);
});

it("goes on after errors, and reports them once", async () => {
  const problems: string[] = [];
  let broken = true;
  let attempts = 0;
  const write: Store["write"] = (unit, options) =>
    broken && ++attempts ? Promise.reject(new Error("no database")) : store.write(unit, options);
  const jobs = createTestJobs({ ...store, write }, (problem) => void problems.push(problem));
  await store.write(async (tx) => {
    const [one] = (await tx.advisories.list({ visible: [ours], filter: {}, order, skip: 0, limit: 1 })).rows;
    await tx.advisories.replace(one ?? assert.fail());
  });
  jobs.start();
  await waitUntil(() => attempts >= 2);
  assert.deepEqual(problems, ["advisories could not be indexed and will be tried again"]);
  assert.equal(await hasChanges(), true);
  broken = false;
  await waitUntil(async () => !(await hasChanges()));
  await jobs.stop();
});

const order = { field: "uid", descending: false };

it("finds what was written without it, before and after it is indexed", async () => {
  const file = openDatabase(join(directory, "arbor.db"));
  // As an older version of the service writes, which knows only the table itself.
  file.exec("UPDATE advisories SET artifact_type = 'other' WHERE artifact_type = 'apk'");
  const changed = file.prepare("SELECT count(*) FROM advisories WHERE artifact_type = 'other'").pluck().get();
  file.close();
  assert.ok(Number(changed) > 0);
  // So that the next read begins a new snapshot.
  await sleep(20);
  const jobs = createTestJobs(store, failUnexpectedly);
  for (const waits of [true, false]) {
    assert.equal(await hasChanges(), waits);
    assert.equal(await totalOf("apk"), 0);
    assert.equal(await totalOf("other"), changed);
    await jobs.runNow(NAME);
  }
});

it("finds an advisory whose entry takes the number of one that was deleted since the last run", async () => {
  const jobs = createTestJobs(store, failUnexpectedly);
  const [first = assert.fail()] = randomAdvisories(COUNT + 1, 3).slice(COUNT);
  const { artifactType } = first;
  // SQLite assigns the greatest number again once it is free.
  await store.write((tx) => storeModel(tx, first, 0));
  await jobs.runNow(NAME);
  const total = await totalOf(artifactType);
  const second = { ...first, uid: childUid(first.groupUid, 0x9000), events: [] };
  await store.write(async (tx) => {
    await tx.advisories.delete(first.uid);
    await storeModel(tx, second, 0);
  });
  for (const isIndexed of [false, true]) {
    assert.equal(await hasChanges(), !isIndexed);
    assert.equal(await totalOf(artifactType), total);
    await jobs.runNow(NAME);
  }
});
