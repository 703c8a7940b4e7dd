// The suite of row versions on SQLite; on PostgreSQL it is part of test/pg/audit.test.ts.
import { memoryDir } from "../support/temp-dir.js";
import { attack, openLog } from "./log-kit.js";
import { versionsSuite } from "./versions-suite.js";

versionsSuite("versions of audit rows on SQLite", async () => {
  const log = await openLog(memoryDir());
  return { log, execute: async (statement) => attack(log.directory, statement) };
});
