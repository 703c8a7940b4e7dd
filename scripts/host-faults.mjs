// Checks what a service on SQLite does when its machine has faults: a full disk, a read-only file system, a database that is
// replaced, too few descriptors, a clock that jumps. Needs root, e2fsprogs and prlimit:
//
//   node scripts/host-faults.mjs [NAME…] [--control] [--json]
//
// Without names all faults are run. With --control the service does not notice that its write-ahead log was removed. Then
// acknowledged writes must be lost; otherwise the campaign cannot find any.
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { importCompiled } from "./import-compiled.mjs";

const { values, positionals } = parseArgs({
  options: {
    control: { type: "boolean", default: false },
    json: { type: "boolean", default: false },
    inside: { type: "boolean", default: false },
  },
  allowPositionals: true,
});
const { control, json, inside } = values;
// In a mount namespace of its own no other process sees the file systems, and they go away with this one.
if (!inside) {
  const args = ["--mount", process.execPath, ...process.argv.slice(1), "--inside"];
  process.exit(spawnSync("unshare", args, { stdio: "inherit" }).status ?? 1);
}
// A service that ends closes connections with GOAWAY. When connect-node 2.1.2 sends a request right then, it removes its
// listener before the error of that connection comes.
process.on("uncaughtException", (error) => {
  if (!/GOAWAY without any open streams/.test(error.message)) throw error;
});
const { hostFaults } = await importCompiled("test/faults/host-faults.ts");
// Of nine services one was killed right after a checkpoint, and had nothing to lose.
const names = control ? Array(6).fill("wal-removed") : positionals.length > 0 ? positionals : Object.keys(hostFaults);
const unknown = names.filter((name) => hostFaults[name] === undefined);
if (unknown.length > 0) {
  console.error(`host-faults: there is no ${unknown.join(", ")}: name some of ${Object.keys(hostFaults).join(", ")}`);
  process.exit(2);
}
const directory = mkdtempSync(join(tmpdir(), "arbor-host-faults-"));
let lost = 0;
let problems = 0;
const waiting = [...names];

async function runNext() {
  for (let name = waiting.shift(); name !== undefined; name = waiting.shift()) {
    const own = mkdtempSync(join(directory, `${name}-`));
    let report;
    try {
      report = await hostFaults[name](own, control);
    } catch (error) {
      console.error(`host-faults: ${name}: ${error?.stack ?? error}`);
      problems++;
      continue;
    }
    lost += report.lost.length;
    problems += report.problems.length;
    print(report);
  }
}

function print(report) {
  if (json) return console.log(JSON.stringify(report));
  const { fault, answers, logged, warnings, recovery, acknowledged } = report;
  console.log(`${fault}: ${acknowledged} acknowledged, ${report.lost.length} lost, ${report.problems.length} problems`);
  for (const text of [...report.lost.slice(0, 3), ...new Set(report.problems)].slice(0, 8))
    console.error(`  ! ${text}`);
  console.log(
    `  answered: ${Object.entries(answers)
      .map(([name, answer]) => `${name} ${answer}`)
      .join("; ")}`,
  );
  console.log(`  logged (${warnings.length} lines of warn and above): ${[...new Set(logged)].join(" | ")}`);
  for (const text of warnings) console.log(`    ${text}`);
  console.log(`  came back: ${recovery}`);
}

try {
  // Most of the time they wait.
  await Promise.all([runNext(), runNext(), runNext()]);
} finally {
  spawnSync("umount", ["--lazy", "--all-targets", directory], { stdio: "ignore" });
  rmSync(directory, { recursive: true, force: true });
}
console.log(`${names.length} faults, ${lost} acknowledged writes lost, ${problems} problems`);
if (control && lost === 0) console.error("host-faults: the control lost nothing, so the campaign proves nothing");
process.exit((control ? lost > 0 : lost + problems === 0) ? 0 : 1);
