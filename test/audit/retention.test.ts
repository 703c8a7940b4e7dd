// The suite of retention on SQLite; on PostgreSQL it is part of test/pg/audit.test.ts.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { findRetentionObstacle } from "../../src/app/jobs.js";
import { memoryDir } from "../support/temp-dir.js";
import { checkpointAttacksSuite } from "./checkpoint-attacks-suite.js";
import { attack, openLog } from "./log-kit.js";
import { retentionSuite } from "./retention-suite.js";

retentionSuite("retention on SQLite", (clock) => openLog(memoryDir(), clock));

checkpointAttacksSuite("checkpoints on SQLite, attacked", async (clock) => {
  const log = await openLog(memoryDir(), clock);
  return { log, execute: (...statements) => attack(log.directory, ...statements) };
});

describe("old rows may be deleted", () => {
  for (const { oldest, may } of [
    { oldest: "0.4.0", may: false },
    { oldest: "0.5.9", may: false },
    { oldest: "0.6.0", may: true },
    { oldest: "0.10.0", may: true },
    { oldest: "1.0.0", may: true },
  ]) {
    test(`${may ? "once" : "not while"} version ${oldest} is the oldest that may open the database`, async (t) => {
      const { store, close } = await openLog(memoryDir());
      t.after(close);
      await store.write((tx) => tx.settings.put("oldest_version", oldest));
      const obstacle = await findRetentionObstacle(store);
      if (may) assert.equal(obstacle, undefined);
      else assert.match(obstacle ?? "", new RegExp(`^version ${oldest} of Arbor .*run arbor migrate --contract`));
    });
  }
});
