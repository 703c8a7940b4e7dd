import assert from "node:assert/strict";
import { after, test } from "node:test";
import { requireContracted } from "../../../src/pipeline/resource/contracted.js";
import { openSqlite } from "../../../src/store/sqlite/open.js";
import { OLDEST_VERSION, VERSION } from "../../../src/store/version.js";
import { tempDir } from "../../support/temp-dir.js";

const store = openSqlite({ directory: tempDir() });
after(() => store.close());

/** Whether `arbor migrate --contract` must run before, where `oldest` may still open the database. */
async function mustContract(oldest: string, since: string): Promise<boolean> {
  await store.write((tx) => tx.settings.put(OLDEST_VERSION, oldest));
  try {
    await store.read((tx) => requireContracted(tx, "a thing", since));
    return false;
  } catch (error) {
    assert.match((error as Error).message, /a thing: .*arbor migrate --contract/);
    return true;
  }
}

test("a new feature waits until no version without it may open the database", async () => {
  assert.equal(await mustContract("1.7.0", "1.8.0"), true);
  assert.equal(await mustContract("1.8.0", "1.8.0"), false, "also where the versions since then are not contracted");
  assert.equal(await mustContract("1.10.0", "1.8.0"), false);
});

test("what the next version brings has this version already", async () => {
  assert.equal(await mustContract(VERSION, "99.0.0"), false, "the database that this version creates");
  assert.equal(await mustContract("1.0.0", "99.0.0"), true);
});
