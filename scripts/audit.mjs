// Asks the registry of npm for known vulnerabilities of the production dependencies, as the lock file has them. Fails if
// there is one of severity high or critical. Where the registry does not answer it says so, and does not fail.
//
//   npm run -s audit
import { spawnSync } from "node:child_process";

const args = ["audit", "--package-lock-only", "--omit", "dev", "--audit-level", "high", "--json"];
const { stdout, stderr, error } = spawnSync("npm", args, { encoding: "utf8", maxBuffer: 2 ** 26, timeout: 60_000 });
const report = parse(stdout);
const counts = report?.metadata?.vulnerabilities;
if (counts === undefined) {
  const why = error?.message ?? report?.message ?? stderr.trim().split("\n").at(-1);
  console.log(`audit: skipped, the registry does not answer: ${why}`);
} else {
  for (const { name, severity, range } of Object.values(report.vulnerabilities))
    console.log(`${severity}: ${name} ${range}`);
  const { total, high, critical } = counts;
  console.log(`audit: ${total} vulnerable packages, ${high + critical} of severity high or critical`);
  if (high + critical > 0) process.exit(1);
}

function parse(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
