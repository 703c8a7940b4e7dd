// Both phases of an upgrade while a server of the version before, which does not know the migration, serves writes.
import assert from "node:assert/strict";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { it } from "node:test";
import type { MigrationDatabase } from "../../../src/store/migrate/data-migration.js";
import { contract, readDatabaseState } from "../../../src/store/migrate/phases.js";
import { needsContracting, needsExpanding } from "../../../src/store/migrate/state.js";
import { VERSION } from "../../../src/store/version.js";
import { spawn } from "../../support/child-process.js";
import { startHarness } from "../../support/harness.js";
import { createRandom } from "../../support/openapi/random.js";
import { PROJECT, scriptArguments } from "../../support/project.js";
import { moveDescriptions } from "./group-notes.js";
import { BEFORE, setOldestVersion } from "./migration-suite.js";

/** A database that a server and a migration use at the same time. */
export interface ServedDatabase {
  /** Flags of `arbor serve` by setting name. */
  readonly settings: Readonly<Record<string, string>>;
  openMigration(): Promise<MigrationDatabase>;
}

const migrations = [moveDescriptions()];
/** How many groups there are at first: enough for some batches. */
const GROUPS = 120;
/** At which batches the process of the migration is killed. */
const KILLS = [1, 2];
const SEED = 7;

/** Declares the test. `create` creates a database with the schema of the version before. */
export function oldServerSuite(name: string, create: () => Promise<ServedDatabase>): void {
  it(`${name}: a server of the version before writes while a database is expanded, and nothing is lost`, async (t) => {
    const { settings, openMigration } = await create();
    let harness = await startHarness(settings);
    t.after(() => harness.stop());
    const { group, identity } = await harness.organisation("acme.example");
    const send = async (method: string, path: string, body?: object) => {
      const headers = { authorization: `Bearer ${await harness.token(identity)}`, "content-type": "application/json" };
      const sent = body === undefined ? {} : { body: JSON.stringify(body) };
      const response = await fetch(`${harness.url}/iam/v2beta1/groups/${path}`, { method, headers, ...sent });
      const answer = await response.text();
      assert.equal(response.status, 200, answer);
      return answer;
    };
    const createGroup = async (i: number): Promise<string> =>
      JSON.parse(await send("POST", group, { name: `group ${i}`, description: `note ${i}` })).uid;
    const random = createRandom(SEED);
    t.diagnostic(`seed ${SEED}`);
    const uids: string[] = [];
    for (let i = 0; i < GROUPS; i++) uids.push(await createGroup(i));

    const database = await openMigration();
    t.after(() => database.close());
    await setOldestVersion(database, BEFORE);
    let isStopped = false;
    const changes = { created: 0, updated: 0, deleted: 0 };
    const write = async () => {
      for (let i = 0; !isStopped; i++) {
        uids.push(await createGroup(GROUPS + i));
        changes.created++;
        const [changed = ""] = uids.splice(random.int(uids.length), 1);
        await send("PATCH", changed, { name: `changed ${i}`, description: `changed ${i}` });
        changes.updated++;
        const [deleted = ""] = uids.splice(random.int(uids.length), 1);
        await send("DELETE", deleted);
        changes.deleted++;
        uids.push(changed);
      }
    };
    const writing = write();
    for (const kill of KILLS) assert.equal(await expandInProcess(settings, kill), "SIGKILL", `killed at batch ${kill}`);
    assert.equal(await expandInProcess(settings), null);
    const state = await readDatabaseState(database, migrations);
    assert.deepEqual([needsExpanding(state), needsContracting(state), state.oldestVersion], [false, true, BEFORE]);
    isStopped = true;
    await writing;
    for (const [kind, count] of Object.entries(changes)) assert.ok(count > 5, `${count} groups were ${kind}`);

    const different = `SELECT count(*) AS n FROM groups g FULL JOIN group_notes n ON n.uid = g.uid
      WHERE g.uid IS NULL OR n.uid IS NULL OR g.description <> n.note`;
    const count = async () => Number((await database.read((tx) => tx.query(different)))[0]?.n);
    assert.equal(await count(), 0);
    await harness.stop();
    await contract(database, { migrations });
    assert.equal((await readDatabaseState(database, migrations)).oldestVersion, VERSION);
    harness = await startHarness(settings);
    await createGroup(9_999);
    assert.equal(await count(), 1, "control: after the contract phase nothing copies what a server writes");
  });
}

// Runs `arbor migrate --expand` with the migration, and kills the process within a batch.
async function expandInProcess(settings: ServedDatabase["settings"], killedAt?: number): Promise<string | null> {
  const args = [JSON.stringify(settings), "group-notes", "--expand"];
  const child = spawn(process.execPath, [...scriptArguments("test/store/migrate/migrate-process.ts"), ...args], {
    cwd: PROJECT,
    stdio: ["ignore", "pipe", "inherit"],
  });
  const exited = once(child, "exit");
  let batches = 0;
  createInterface({ input: child.stdout }).on("line", (line) => {
    if (line === "batch" && ++batches === killedAt) child.kill("SIGKILL");
  });
  const [code, signal] = await exited;
  if (signal === null) assert.equal(code, 0);
  return signal;
}
