// Asks the registry of npm for known vulnerabilities of what is in the bill of materials (scripts/sbom.mjs). Fails if there is
// one of severity high or critical. Where the registry does not answer it says so, and does not fail.
//
//   npm run -s audit
import { spawnSync } from "node:child_process";

// All are asked for, since the libraries in the console are dependencies of development.
const args = ["audit", "--package-lock-only", "--json"];
const { stdout, stderr, error } = spawnSync("npm", args, { encoding: "utf8", maxBuffer: 2 ** 26, timeout: 60_000 });
const report = parse(stdout);
if (report?.vulnerabilities === undefined) {
  const why = error?.message ?? report?.message ?? stderr.trim().split("\n").at(-1);
  console.log(`audit: skipped, the registry does not answer: ${why}`);
} else {
  const installed = listInstalled();
  const found = Object.values(report.vulnerabilities).filter(({ name }) => installed.has(name));
  for (const { name, severity, range } of found) console.log(`${severity}: ${name} ${range}`);
  const severe = found.filter(({ severity }) => ["high", "critical"].includes(severity));
  console.log(`audit: ${found.length} vulnerable packages, ${severe.length} of severity high or critical`);
  if (severe.length > 0) process.exit(1);
}

function listInstalled() {
  const { stdout } = spawnSync(process.execPath, ["scripts/sbom.mjs"], { encoding: "utf8", maxBuffer: 2 ** 26 });
  return new Set(JSON.parse(stdout).components.map(({ name }) => name));
}

function parse(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
