// How long a copy to PostgreSQL and back takes, and how much memory it has at most. Needs PostgreSQL:
//
//   node scripts/with-pg.mjs node --import tsx bench/copy.ts [--groups 100000]
//
// The command must be built: npm run build.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { parseArgs } from "node:util";
import { emptyDatabase } from "../test/pg/databases.js";
import { environmentWithoutSettings, PROJECT } from "../test/support/project.js";
import { seed } from "./seed.js";

const { values } = parseArgs({ options: { groups: { type: "string", default: "100000" } } });
const { directory } = await seed(Number(values.groups));
const masterKey = ["--master-key-file", join(directory, "master.key")];
const back = mkdtempSync(join(tmpdir(), "arbor-bench-copy-"));
try {
  const url = await emptyDatabase();
  const there = await measure("SQLite to PostgreSQL", ["--data", directory, "--to", url]);
  const here = await measure("PostgreSQL to SQLite", ["--database-url", url, ...masterKey, "--to", back]);
  const compared = await measure("compare", ["--verify", "--data", directory, "--to", url]);
  console.log(`${new Set([there, here, compared]).size === 1 ? "equal" : "DIFFERENT"} digests:\n${there}`);
} finally {
  rmSync(back, { recursive: true, force: true });
}

async function measure(name: string, args: readonly string[]): Promise<string> {
  const startMs = performance.now();
  const child = spawn(process.execPath, [join(PROJECT, "dist", "main.js"), "copy", ...args], {
    env: environmentWithoutSettings(),
    stdio: ["ignore", "pipe", "pipe"],
  });
  let peakKb = 0;
  const timer = setInterval(() => {
    peakKb = Math.max(peakKb, readPeakKb(child.pid));
  }, 50);
  const [stdout, stderr, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, "close")]);
  clearInterval(timer);
  if (code !== 0) throw new Error(stderr);
  const seconds = (performance.now() - startMs) / 1000;
  console.log(`${name}: ${seconds.toFixed(1)} s, ${Math.round(peakKb / 1024)} MiB at most`);
  console.log(stderr.trim().split("\n").at(-1));
  return stdout;
}

function readPeakKb(pid: number | undefined): number {
  try {
    return Number(/^VmHWM:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1] ?? 0);
  } catch {
    // The process has ended.
    return 0;
  }
}
