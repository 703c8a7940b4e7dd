// Runs `arbor migrate` with a migration of the tests, and writes a line within each transaction of a batch, in which the
// process may then be killed. The arguments are the settings in JSON, the name of the migration and the flags.
import { writeSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { migrateCommand } from "../../../src/cli/host/migrate.js";
import { resolveSettings } from "../../../src/config/config.js";
import { copySettings } from "./copied-settings.js";
import { moveDescriptions } from "./group-notes.js";

const [settings = "{}", name = "", ...flags] = process.argv.slice(2);
const plant = { "copied-settings": copySettings, "group-notes": moveDescriptions }[name];
if (plant === undefined) throw new Error(`there is no migration ${name}`);
const migration = plant(async () => {
  writeSync(1, "batch\n");
  await sleep(20);
});
await migrateCommand(
  resolveSettings({ flags: JSON.parse(settings), env: {} }),
  { expand: flags.includes("--expand"), contract: flags.includes("--contract") },
  [migration],
);
