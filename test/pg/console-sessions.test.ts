// Sessions of the console on two nodes. Needs TEST_ARBOR_DATABASE_URL, which `npm run test:pg` sets.
import { join } from "node:path";
import { readMasterKey } from "../../src/issuer/keys/master-key.js";
import { BASE_URL, consoleNodesSuite } from "../issuer/console/nodes-suite.js";
import { startHarness } from "../support/harness.js";
import { tempDir } from "../support/temp-dir.js";
import { newDatabase } from "./databases.js";

consoleNodesSuite("sessions of the console on PostgreSQL", async () => {
  const masterKeyFile = join(tempDir(), "master.key");
  readMasterKey(masterKeyFile, true);
  const settings = { databaseUrl: await newDatabase(), masterKeyFile, baseUrl: BASE_URL };
  return [await startHarness(settings), await startHarness(settings)];
});
