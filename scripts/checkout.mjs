// Extracts other versions from the history of git, and runs the commands and the service of a built checkout. They read their
// settings only from flags.
import { execFileSync, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, rmSync } from "node:fs";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { text } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";

const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("ARBOR_")));

const PROJECT = resolve(import.meta.dirname, "..");

/** Extracts the files of a commit into an existing directory; returns whether git has the commit. */
export function extractCommit(commit, directory) {
  const archive = join(directory, "commit.tar");
  const made = spawnSync("git", ["archive", "--output", archive, commit], { cwd: PROJECT, stdio: "ignore" });
  if (made.status !== 0) return false;
  execFileSync("tar", ["-xf", archive, "-C", directory]);
  rmSync(archive);
  return true;
}

/**
 * Runs a command in a directory and returns its output.
 *
 * @throws Error with what it wrote to standard error when it does not end with 0
 */
export async function runCommand(checkout, args, cwd) {
  const child = spawn(process.execPath, [mainOf(checkout), ...args], { env, cwd, stdio: ["ignore", "pipe", "pipe"] });
  const closed = once(child, "close");
  const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr)]);
  const [code, signal] = await closed;
  if (code !== 0) throw new Error(`arbor ${args.slice(0, 2).join(" ")} ended with ${code ?? signal}: ${stderr}`);
  return stdout;
}

/**
 * Starts the service in a directory, on a port of its own.
 *
 * @returns its `url`, and `stop`, which ends it and throws unless it ends with 0; a second call does nothing
 */
export async function startService(checkout, flags, cwd) {
  const args = ["serve", ...flags, "--listen", "127.0.0.1:0", "--log-level", "warn", "--no-access-log"];
  const child = spawn(process.execPath, [mainOf(checkout), ...args], {
    env,
    cwd,
    stdio: ["ignore", "pipe", "inherit"],
  });
  const closed = once(child, "close");
  const listening = once(createInterface({ input: child.stdout }), "line").then(([line]) => line);
  const line = await Promise.race([listening, closed.then(([code]) => `it ended with ${code}`)]);
  const url = /^arbor listening on (http:\S+)$/.exec(line)?.[1];
  const stop = async () => {
    child.kill("SIGTERM");
    const [code, signal] = await closed;
    if (code !== 0) throw new Error(`the service ended with ${code ?? signal}`);
  };
  if (url !== undefined) return { url, stop };
  await stop();
  throw new Error(`the service did not start: ${line}`);
}

/**
 * Waits until all rows of the audit log are sealed.
 *
 * @param run runs a command, given as arguments, and returns its output
 * @returns the report of `arbor audit verify`
 */
export async function untilSealed(run) {
  for (let tries = 0; tries < 50; tries++) {
    const report = await run("audit", "verify");
    if (report.split("\n").every((line) => line === "" || line.endsWith(", 0 unsealed"))) return report;
    await sleep(200);
  }
  throw new Error("the audit log was not sealed in time");
}

function mainOf(checkout) {
  const main = join(checkout, "dist", "main.js");
  if (!existsSync(main)) throw new Error(`${checkout} is not built: npm run build`);
  return main;
}
