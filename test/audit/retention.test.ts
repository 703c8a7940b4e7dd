// The suite of retention on SQLite; on PostgreSQL it is part of test/pg/audit.test.ts.
import { memoryDir } from "../support/temp-dir.js";
import { checkpointAttacksSuite } from "./checkpoint-attacks-suite.js";
import { attack, openLog } from "./log-kit.js";
import { retentionSuite } from "./retention-suite.js";

retentionSuite("retention on SQLite", (clock) => openLog(memoryDir(), clock));

checkpointAttacksSuite("checkpoints on SQLite, attacked", async (clock) => {
  const log = await openLog(memoryDir(), clock);
  return { log, execute: (...statements) => attack(log.directory, ...statements) };
});
