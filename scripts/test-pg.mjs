// Runs the tests that need PostgreSQL, against a server started for them.
import { spawnSync } from "node:child_process";
import { readdirSync } from "node:fs";
import { join } from "node:path";

const files = readdirSync("test/pg")
  .filter((name) => name.endsWith(".test.ts"))
  .map((name) => join("test/pg", name));
const args = ["scripts/with-pg.mjs", process.execPath, "--import", "tsx", "--test", ...files];
process.exit(spawnSync(process.execPath, args, { stdio: "inherit" }).status ?? 1);
