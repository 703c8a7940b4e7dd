// Runs `arbor migrate` with the migration of the tests on a data directory, and writes a line within each transaction of
// a batch, in which the process is then killed. The arguments are the directory and the flags.
import { writeSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { migrateCommand } from "../../../src/cli/host/migrate.js";
import { resolveSettings } from "../../../src/config/config.js";
import { copySettings } from "../../store/migrate/copied-settings.js";

const [data = "", ...flags] = process.argv.slice(2);
const copying = copySettings(async () => {
  writeSync(1, "batch\n");
  await sleep(20);
});
await migrateCommand(
  resolveSettings({ flags: { data }, env: {} }),
  { expand: flags.includes("--expand"), contract: flags.includes("--contract") },
  [copying],
);
