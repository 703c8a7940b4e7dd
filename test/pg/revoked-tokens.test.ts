// Revocations on two nodes. Needs TEST_ARBOR_DATABASE_URL, which `npm run test:pg` sets.
import { join } from "node:path";
import { readMasterKey } from "../../src/issuer/keys/master-key.js";
import { revokedNodesSuite } from "../issuer/revoked-nodes-suite.js";
import { startHarness } from "../support/harness.js";
import { tempDir } from "../support/temp-dir.js";
import { newDatabase } from "./databases.js";

const start = async () => {
  const masterKeyFile = join(tempDir(), "master.key");
  readMasterKey(masterKeyFile, true);
  const settings = { databaseUrl: await newDatabase(), masterKeyFile, baseUrl: "http://arbor.example" };
  return [await startHarness(settings), await startHarness(settings)] as const;
};

revokedNodesSuite("PostgreSQL", start);
