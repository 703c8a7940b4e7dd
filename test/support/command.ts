// `arbor` commands in the process of the test. A command takes what it is given from `process.env` and writes to
// `process.stdout`, so commands run one after another, and only their own writes are captured.
import { AsyncLocalStorage } from "node:async_hooks";
import { run } from "../../src/cli/program.js";
import { scriptArguments } from "./project.js";

/** How a command ended. */
export interface Finished {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** A command that runs. */
export interface RunningCommand {
  readonly ended: Promise<Finished>;
  /** Resolves when the text on standard error matches. */
  waitForOutput(pattern: RegExp): Promise<RegExpExecArray>;
}

interface Written {
  stdout: string;
  stderr: string;
  onWrite: () => void;
}

const current = new AsyncLocalStorage<Written>();
let isCapturing = false;
let last: Promise<unknown> = Promise.resolve();

/** Starts `arbor` with these arguments; `env` is added to an environment without settings of arbor. */
export function startCommand(args: readonly string[], env: Readonly<Record<string, string>> = {}): RunningCommand {
  capture();
  const written: Written = { stdout: "", stderr: "", onWrite: () => {} };
  const ended = last.then(async (): Promise<Finished> => {
    const restore = enter(env);
    try {
      const code = await current.run(written, () => run(args));
      return { code, stdout: written.stdout, stderr: written.stderr };
    } finally {
      restore();
      // No command runs now. Until then Node follows every promise of the process.
      current.disable();
    }
  });
  last = ended.catch(() => {});
  return {
    ended,
    waitForOutput: (pattern) =>
      new Promise((resolve, reject) => {
        written.onWrite = () => {
          const match = pattern.exec(written.stderr);
          if (match) resolve(match);
        };
        written.onWrite();
        ended.then(() => reject(new Error(`it ended, having written: ${written.stderr}${written.stdout}`)), reject);
      }),
  };
}

/** Runs `arbor` with these arguments to its end. */
export function runCommand(args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<Finished> {
  return startCommand(args, env).ended;
}

// Writes outside of a command belong to the test runner.
function capture(): void {
  if (isCapturing) return;
  isCapturing = true;
  for (const name of ["stdout", "stderr"] as const) {
    const stream = process[name];
    const write = stream.write.bind(stream) as (...args: unknown[]) => boolean;
    stream.write = ((...args: unknown[]) => {
      const written = current.getStore();
      if (written === undefined) return write(...args);
      written[name] += String(args[0]);
      written.onWrite();
      return true;
    }) as typeof stream.write;
  }
}

// Sets the environment of a command, and returns what restores that of the test.
function enter(env: Readonly<Record<string, string>>): () => void {
  const before = { ...process.env };
  const umask = process.umask();
  const [, script] = process.argv;
  for (const name of Object.keys(before)) if (name.startsWith("ARBOR_")) delete process.env[name];
  Object.assign(process.env, env);
  process.argv[1] = scriptArguments("src/main.ts").at(-1) ?? "";
  return () => {
    for (const name of Object.keys(process.env)) if (!(name in before)) delete process.env[name];
    Object.assign(process.env, before);
    process.umask(umask);
    process.argv[1] = script ?? "";
  };
}
