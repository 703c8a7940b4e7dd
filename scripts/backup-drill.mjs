// Backs up a service under 200 writes a second, destroys its data, restores it and compares its responses:
//
//   node scripts/backup-drill.mjs [--gigabytes N] [--restores N] [--directory DIRECTORY]
//
// The database has this size, mostly of free pages. With --restores more backups are made and restored under
// the same load. DIRECTORY is where the files are, three times the size of the database; it is made anew.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { register } from "tsx/esm/api";

const { values } = parseArgs({
  options: {
    gigabytes: { type: "string", default: "0.25" },
    restores: { type: "string", default: "2" },
    directory: { type: "string", default: tmpdir() },
  },
});
const [gigabytes, restores] = [Number(values.gigabytes), Number(values.restores)];
if (!(gigabytes > 0) || !Number.isInteger(restores) || restores < 0) {
  console.error("backup-drill: --gigabytes is a number above 0, --restores a whole number");
  process.exit(2);
}
register();
const { runDrill } = await import("../test/e2e/backup-drill.ts");
const directory = mkdtempSync(join(values.directory, "arbor-drill-"));
let problems = ["the drill did not end"];
try {
  problems = await runDrill({ directory, gigabytes, restores, print: (line) => console.log(line) });
} finally {
  rmSync(directory, { recursive: true, force: true });
}
process.exit(problems.length === 0 ? 0 : 1);
