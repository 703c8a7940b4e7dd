// Processes that tests start. Each has a limit after which it is killed and its test fails with what it wrote: a test that
// waits for a process without a limit can wait for ever. `test/architecture.test.ts` finds tests that start one otherwise.
import * as children from "node:child_process";
import { promisify } from "node:util";
import { isCampaign } from "./scale.js";

/** How long a process may run. Servers of campaigns run as long as the campaign. */
const LIMIT_MS = isCampaign ? 6 * 60 * 60_000 : 3 * 60_000;
/** How much of the output an error shows. */
const SHOWN_CHARACTERS = 4_000;

const limit = { timeout: LIMIT_MS, killSignal: "SIGKILL" } as const;

/**
 * Starts a process, as `spawn` of node:child_process does. After `timeout` or the limit it is killed, and the error with its
 * output is emitted: `once(child, "close")` rejects, or the test fails with it as an uncaught one.
 */
export const spawn = ((command: string, args: readonly string[], options: children.SpawnOptions = {}) => {
  const { timeout = LIMIT_MS, ...others } = options;
  const child = children.spawn(command, args, others);
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    if (stream === null) continue;
    // A listener would start the stream before the test reads it.
    const push = stream.push.bind(stream);
    stream.push = (chunk: unknown, encoding) => {
      if (chunk !== null) output = `${output}${chunk}`.slice(-SHOWN_CHARACTERS);
      return push(chunk, encoding);
    };
  }
  const timer = setTimeout(() => {
    child.kill("SIGKILL");
    // Its own children may hold the streams open.
    for (const stream of [child.stdout, child.stderr]) stream?.destroy();
    child.emit("error", new Error(`${nameOf(command, args)} ran for ${timeout} ms, having written: ${output}`));
  }, timeout).unref();
  child.once("exit", () => clearTimeout(timer));
  return child;
}) as typeof children.spawn;

/**
 * Ends a process by SIGTERM, and by SIGKILL where that does not help in time. Does nothing to one that has ended.
 *
 * @param closed resolves when it has
 */
export async function stopChild(
  child: children.ChildProcess,
  closed: Promise<unknown>,
  patienceMs: number,
): Promise<void> {
  child.kill("SIGTERM");
  const timer = setTimeout(() => child.kill("SIGKILL"), patienceMs);
  await closed;
  clearTimeout(timer);
}

/** Runs a process to its end, as `spawnSync` of node:child_process does; throws where it exceeds the limit. */
export const spawnSync = ((command: string, args: readonly string[], options?: children.SpawnSyncOptions) => {
  const result = children.spawnSync(command, args, { ...limit, ...options });
  if (result.error !== undefined && "code" in result.error && result.error.code === "ETIMEDOUT") {
    throw new Error(`${nameOf(command, args)} exceeded its limit, having written: ${result.stdout}${result.stderr}`);
  }
  return result;
}) as typeof children.spawnSync;

/** Runs a process to its end, as `execFileSync` of node:child_process does. */
export const execFileSync = ((command: string, args: readonly string[], options?: children.ExecFileSyncOptions) =>
  children.execFileSync(command, args, { ...limit, ...options })) as typeof children.execFileSync;

const execute = promisify(children.execFile);

/** Runs a process to its end; rejects where it fails, with its output. */
export const execFile = ((command: string, args: readonly string[], options?: children.ExecFileOptions) =>
  execute(command, args, { ...limit, ...options })) as typeof execute;

function nameOf(command: string, args: readonly string[]): string {
  return [command, ...args].join(" ").slice(0, 300);
}
