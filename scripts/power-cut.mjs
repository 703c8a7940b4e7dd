// Checks that a power cut loses no acknowledged write on SQLite. Needs root, e2fsprogs and python3:
//
//   node scripts/power-cut.mjs [--cuts N] [--control]
//
// With --control SQLite syncs nothing. Then writes must be lost; otherwise the campaign cannot find any.
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { importCompiled } from "./import-compiled.mjs";

const { values } = parseArgs({
  options: {
    cuts: { type: "string", default: "20" },
    control: { type: "boolean", default: false },
    inside: { type: "boolean", default: false },
  },
});
const { control, inside } = values;
const cuts = Number(values.cuts);
if (!Number.isInteger(cuts) || cuts < 1) {
  console.error("power-cut: --cuts must be a whole number above 0");
  process.exit(2);
}
// In a mount namespace of its own no other process sees the file system, and it goes away with this one.
if (!inside) {
  const args = ["--mount", process.execPath, ...process.argv.slice(1), "--inside"];
  process.exit(spawnSync("unshare", args, { stdio: "inherit" }).status ?? 1);
}
// A server without its disk ends, and closes connections with GOAWAY. When connect-node 2.1.2 sends a request right then,
// it removes its listener before the error of that connection comes.
process.on("uncaughtException", (error) => {
  if (!/GOAWAY without any open streams/.test(error.message)) throw error;
});
const { runPowerCuts } = await importCompiled("test/e2e/power-cut.ts");
const directory = mkdtempSync(join(tmpdir(), "arbor-power-cut-"));
let result;
try {
  result = await runPowerCuts({ directory, cuts, control });
} finally {
  rmSync(directory, { recursive: true, force: true });
}
const { acknowledged, lost, problems } = result;
for (const text of [...lost.slice(0, 5), ...new Set(problems)].slice(0, 20)) console.error(`power-cut: ${text}`);
console.log(
  `${result.cuts} power cuts, ${acknowledged} acknowledged, ${lost.length} lost, ${problems.length} problems`,
);
if (control && lost.length === 0) console.error("power-cut: the control lost nothing, so the campaign proves nothing");
process.exit((control ? lost.length > 0 : lost.length + problems.length === 0) ? 0 : 1);
