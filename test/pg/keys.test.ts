// Keys where nodes write side by side. Needs TEST_ARBOR_DATABASE_URL.
import assert from "node:assert/strict";
import { join } from "node:path";
import { describe, test } from "node:test";
import { generateTokenKey } from "../../src/issuer/keys/key-generation.js";
import { revokeKey } from "../../src/issuer/keys/key-states.js";
import { readMasterKey } from "../../src/issuer/keys/master-key.js";
import { openPg } from "../../src/store/pg/open.js";
import { runInterleavings } from "../issuer/keys/interleaving.js";
import { HOUR, schedule } from "../issuer/keys/key-kit.js";
import { keyNodesSuite } from "../issuer/keys/nodes-suite.js";
import { startHarness } from "../support/harness.js";
import { tempDir } from "../support/temp-dir.js";
import { waitUntil } from "../support/wait-until.js";
import { newDatabase } from "./databases.js";

async function opener() {
  const url = await newDatabase();
  return () => openPg({ url, poolSize: 4 });
}

/** The settings of nodes that share a new database. */
async function createSettings() {
  const masterKeyFile = join(tempDir(), "master.key");
  readMasterKey(masterKeyFile, true);
  return { databaseUrl: await newDatabase(), masterKeyFile };
}

keyNodesSuite(opener);

describe("keys on several nodes", () => {
  test("no live token is refused, no revoked key trusted, and one key is always in use", async () => {
    const tally = await runInterleavings({ ...schedule, active: 2 * HOUR }, { runs: 15, open: await opener() });
    assert.ok(tally.accepted > 0 && tally.acceptedElsewhere > 0);
  });

  test("one that is revoked on a node ends on the others within 5 s", async (t) => {
    const settings = { ...(await createSettings()), baseUrl: "http://arbor.example" };
    const [here, there] = [await startHarness(settings), await startHarness(settings)];
    t.after(() => Promise.all([here.stop(), there.stop()]));
    const { group, identity, token } = await here.organisation("acme.example");
    const statusOf = async (bearer: string) => {
      const headers = { authorization: `Bearer ${bearer}` };
      return (await fetch(`${there.url}/iam/v2beta1/groups/${group}`, { headers })).status;
    };
    assert.equal(await statusOf(token), 200);
    const { store, keys, masterKey, clock } = here.app.installation;
    const { kid } = keys.getSigningKey();
    const spare = await generateTokenKey("ES256", masterKey, clock());
    await store.write((tx) => revokeKey(tx, kid, spare));
    const revokedMs = performance.now();
    await waitUntil(async () => (await statusOf(token)) !== 200);
    assert.ok(performance.now() - revokedMs < 5_000);
    assert.equal(await statusOf(token), 401);
    await waitUntil(() => keys.getSigningKey().kid !== kid);
    const fresh = await here.token(identity);
    await waitUntil(async () => (await statusOf(fresh)) !== 401);
    assert.ok(performance.now() - revokedMs < 5_000);
  });
});
