// SIGKILL at every step of a conversion: the next run completes it, and until then the old database is at its path.
import assert from "node:assert/strict";
import { once } from "node:events";
import { linkSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { type ConversionStep, convertSqlite } from "../../src/store/migrate/conversion/sqlite.js";
import { openDatabase } from "../../src/store/sqlite/driver.js";
import { spawn } from "../support/child-process.js";
import { inconsistenciesIn } from "../support/consistency.js";
import { PROJECT, scriptArguments } from "../support/project.js";
import { type Fixture, oldFixtures, restoreSqlite } from "./fixtures.js";
import { assertRowsKept, dumpSqlite } from "./migrated-rows.js";

const newest = oldFixtures.at(-1) as Fixture;
const steps: readonly ConversionStep[] = ["build", "sync", "keep", "replace", "done"];
const moments = [...steps, "rows 0", "rows 100", "indexes 0", "indexes 100"];

describe("kill -9 of a conversion", { concurrency: 2 }, () => {
  for (const moment of moments) {
    it(`at ${moment} loses nothing, and the next run completes it`, async () => {
      const directory = restoreSqlite(newest);
      const file = join(directory, "arbor.db");
      const [bytes, before] = [readFileSync(file), dump(file)];
      await kill(directory, moment);
      if (moment === "done") {
        await assert.rejects(convert(directory), /of version 1\.0 or newer/);
      } else {
        assert.deepEqual(readFileSync(file), bytes, "the old database is at its path");
        await convert(directory);
      }
      assertRowsKept(before, dump(file));
      assert.deepEqual(readFileSync(`${file}.before-1.0`), bytes);
      assert.deepEqual(
        readdirSync(directory).filter((name) => /converting/.test(name)),
        [],
      );
    });
  }

  it("control: another file at the path of the old database is not replaced", async () => {
    const directory = restoreSqlite(newest);
    linkSync(join(directory, "master.key"), join(directory, "arbor.db.before-1.0"));
    await assert.rejects(convert(directory), /arbor\.db\.before-1\.0 exists/);
  });
});

const convert = (directory: string) => convertSqlite({ directory, onProgress: () => {} });

function dump(file: string) {
  const db = openDatabase(file, { readonly: true });
  try {
    if (db.prepare("SELECT 1 FROM pragma_table_info('groups') WHERE name = 'root_uid'").get() !== undefined) {
      assert.deepEqual(inconsistenciesIn(db), []);
    }
    return dumpSqlite(db);
  } finally {
    db.close();
  }
}

async function kill(directory: string, moment: string): Promise<void> {
  const args = [...scriptArguments("test/upgrade/killed-conversion.ts"), directory, moment];
  const child = spawn(process.execPath, args, { cwd: PROJECT, stdio: ["ignore", "ignore", "inherit"] });
  const [, signal] = await once(child, "close");
  assert.equal(signal, "SIGKILL", `killed at ${moment}`);
}
