// Keys on two servers with one SQLite database, as workers are.
import { rmSync } from "node:fs";
import { join } from "node:path";
import { newDataDir } from "../../support/data-dir.js";
import { startHarness } from "../../support/harness.js";
import { freshNodesSuite } from "./fresh-nodes-suite.js";

freshNodesSuite("SQLite", async () => {
  const settings = { data: newDataDir(), baseUrl: "http://arbor.example" };
  const here = await startHarness(settings);
  // Each has a lock of its own, so that both run.
  rmSync(join(settings.data, "serve.lock"));
  return [here, await startHarness(settings)];
});
