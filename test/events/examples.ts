// The receivers of examples/receivers as processes.
import assert from "node:assert/strict";
import { once } from "node:events";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { spawn, spawnSync } from "../support/child-process.js";
import { environmentWithoutSettings, PROJECT } from "../support/project.js";

/** A receiver, and whether it can run here. */
export interface Example {
  readonly language: string;
  /** Why it cannot run here; undefined where it can. */
  readonly missing: () => string | undefined;
  readonly command: (scratch: string) => readonly [program: string, ...args: string[]];
}

const folder = (name: string) => join(PROJECT, "examples", "receivers", name);
// Debian's modules belong to its own interpreter.
const PYTHON = "/usr/bin/python3";
const runs = (program: string, ...args: string[]) => spawnSync(program, args, { stdio: "ignore" }).status === 0;

/** All of them. */
export const examples: readonly Example[] = [
  {
    language: "TypeScript",
    missing: () => undefined,
    command: () => [process.execPath, "--import", "tsx", join(folder("typescript"), "receiver.mts")],
  },
  {
    language: "Python",
    missing: () =>
      existsSync(PYTHON) && runs(PYTHON, "-s", "-c", "import jwt, cryptography")
        ? undefined
        : "python3-jwt and python3-cryptography are not installed",
    command: () => [PYTHON, "-B", "-s", join(folder("python"), "receiver.py")],
  },
  {
    language: "Go",
    missing: () => (runs("go", "version") ? undefined : "go is not installed"),
    command(scratch) {
      const program = join(scratch, "receiver");
      const { status, stderr } = spawnSync("go", ["build", "-o", program, "."], {
        cwd: folder("go"),
        encoding: "utf8",
        // Nothing is fetched: the receiver needs the standard library alone.
        env: { ...process.env, GOFLAGS: "-mod=readonly", GOPROXY: "off", GOTOOLCHAIN: "local" },
      });
      assert.equal(status, 0, stderr);
      return [program];
    },
  },
];

/** A receiver that runs. */
export interface RunningExample {
  readonly url: string;
  /** The lines that it prints, one for each event. */
  readonly lines: AsyncIterator<string>;
  stop(): void;
}

/** Starts a receiver. @param settings variables besides those that it needs */
export async function startExample(
  example: Example,
  issuer: string,
  group: string,
  settings: Readonly<Record<string, string>> = {},
): Promise<RunningExample> {
  const scratch = mkdtempSync(join(tmpdir(), "arbor-receiver-"));
  const [program, ...args] = example.command(scratch);
  const child = spawn(program, args, {
    cwd: PROJECT,
    env: { ...environmentWithoutSettings(), ISSUER: issuer, GROUP: group, PORT: "0", ...settings },
    stdio: ["ignore", "pipe", "pipe"],
  });
  assert.ok(child.stdout && child.stderr);
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const [line] = await once(createInterface({ input: child.stderr }), "line");
  return {
    url: `http://127.0.0.1:${JSON.parse(String(line)).port}/`,
    lines,
    stop() {
      child.kill("SIGKILL");
      rmSync(scratch, { recursive: true, force: true });
    },
  };
}
