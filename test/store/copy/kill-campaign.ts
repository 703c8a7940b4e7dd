// Kills `arbor copy` with SIGKILL at random moments and runs it again, until it ends by itself.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { text } from "node:stream/consumers";
import { runCommand } from "../../support/command.js";
import { environmentWithoutSettings, PROJECT, scriptArguments } from "../../support/project.js";

/** How a run of `arbor copy` ended. */
export interface CopyRun {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
  readonly ms: number;
}

/** What the campaign did. */
export interface KillResult {
  readonly kills: number;
  /** Kills after which the target was an unfinished copy, which all commands reject. */
  readonly unfinished: number;
  /** Runs that went on with what an earlier run wrote. */
  readonly resumed: number;
  readonly completed: number;
  /** Violations of what must hold. */
  readonly violations: readonly string[];
}

/** What to copy, and how often to kill it. */
export interface KillOptions {
  /** The flags of the source. */
  readonly from: readonly string[];
  /** Names a new empty target: the value of `--to`, and the flags with which commands open it. */
  readonly createTarget: () => Promise<{ readonly to: string; readonly flags: readonly string[] }>;
  readonly kills: number;
  /** A number from 0 to 1. */
  readonly random: () => number;
}

/** Runs `arbor copy` in a process of its own, and kills it after `killMs`. */
export async function runCopy(args: readonly string[], killMs?: number): Promise<CopyRun> {
  const startMs = performance.now();
  const child = spawn(process.execPath, [...scriptArguments("src/main.ts"), "copy", ...args], {
    cwd: PROJECT,
    env: environmentWithoutSettings(),
    stdio: ["ignore", "pipe", "pipe"],
  });
  const timer = killMs === undefined ? undefined : setTimeout(() => child.kill("SIGKILL"), killMs);
  const [stdout, stderr, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, "close")]);
  clearTimeout(timer);
  return { code: code as number | null, stdout, stderr, ms: performance.now() - startMs };
}

/** Runs the campaign. */
export async function runKills({ from, createTarget, kills, random }: KillOptions): Promise<KillResult> {
  const first = await createTarget();
  const reference = await runCopy([...from, "--to", first.to]);
  if (reference.code !== 0) throw new Error(reference.stderr);
  const violations: string[] = [];
  let [killed, unfinished, resumed, completed] = [0, 0, 0, 0];
  let target = await createTarget();
  let isOver = false;
  while (!isOver) {
    const killMs = killed < kills ? Math.ceil(random() * reference.ms) : undefined;
    const run = await runCopy([...from, "--to", target.to], killMs);
    if (run.stderr.includes("continuing an unfinished copy")) resumed++;
    if (run.code === null) {
      killed++;
      const { code, stderr } = await runCommand(["check", ...target.flags]);
      if (stderr.includes("is an unfinished copy of")) unfinished++;
      else if (code === 0) target = await createTarget();
      else if (!/there is no installation/.test(stderr)) violations.push(`after a kill: ${stderr}`);
      continue;
    }
    if (run.code !== 0) violations.push(`ended with ${run.code}: ${run.stderr}`);
    else if (run.stdout !== reference.stdout) violations.push(`other digests: ${run.stdout}`);
    completed++;
    const { code, stdout, stderr } = await runCommand(["check", ...target.flags]);
    if (code !== 0) violations.push(`check: ${stdout}${stderr}`);
    isOver = killed >= kills;
    if (!isOver) target = await createTarget();
  }
  return { kills: killed, unfinished, resumed, completed, violations };
}
