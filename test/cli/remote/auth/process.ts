// `arbor` and scripts of these tests as processes of their own, and the errors of their functions.
import assert from "node:assert/strict";
import type { ChildProcessWithoutNullStreams } from "node:child_process";
import { once } from "node:events";
import { inspect } from "node:util";
import { CommandError } from "../../../../src/cli/errors.js";
import { spawn } from "../../../support/child-process.js";
import { environmentWithoutSettings, PROJECT, scriptArguments } from "../../../support/project.js";

/** A process that runs, or has run. */
export interface Running {
  readonly child: ChildProcessWithoutNullStreams;
  /** Resolves when what it wrote to standard error so far matches. */
  waitForOutput(pattern: RegExp): Promise<RegExpExecArray>;
  readonly ended: Promise<Ended>;
}

/** How a process ended. */
export interface Ended {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a program; `env` is added to an environment without settings of arbor. */
export function run(
  program: string,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
  input = "",
): Running {
  const child = spawn(program, args, { cwd: PROJECT, env: { ...environmentWithoutSettings(), ...env } });
  const written = { stdout: "", stderr: "" };
  for (const name of ["stdout", "stderr"] as const) {
    child[name].setEncoding("utf8").on("data", (text: string) => {
      written[name] += text;
    });
  }
  // It may have ended without reading.
  child.stdin.on("error", () => {});
  child.stdin.end(input);
  const closed = once(child, "close");
  const ended = closed.then(([code, signal]): Ended => ({ code, signal, ...written }));
  return {
    child,
    ended,
    waitForOutput: (pattern) =>
      new Promise((resolve, reject) => {
        const look = () => {
          const match = pattern.exec(written.stderr);
          if (match) resolve(match);
        };
        child.stderr.on("data", look);
        look();
        void ended.then(() => reject(new Error(`it ended, having written: ${written.stderr}${written.stdout}`)));
      }),
  };
}

/** Runs `arbor auth` with these arguments. */
export function auth(args: readonly string[], env: Readonly<Record<string, string>>, input = ""): Running {
  return run(process.execPath, [...scriptArguments("src/main.ts"), "auth", ...args], env, input);
}

/** Runs a script that lies beside these tests. */
export function script(
  name: `${string}.ts`,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Running {
  return run(process.execPath, [...scriptArguments(`test/cli/remote/auth/${name}`), ...args], env);
}

/** The error that `promise` must fail with. */
export async function commandErrorOf(promise: Promise<unknown>): Promise<CommandError> {
  try {
    await promise;
  } catch (error) {
    assert.ok(error instanceof CommandError, inspect(error));
    return error;
  }
  assert.fail("it succeeded");
}
