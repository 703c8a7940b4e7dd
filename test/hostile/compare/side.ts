// One of the two services: a built checkout as users start it, or in a program that mounts a service, on a data directory
// of its own. What is done in it by commands and calls is the same for both.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { cpSync, existsSync, mkdirSync, openSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { text } from "node:stream/consumers";
import { fileURLToPath, pathToFileURL } from "node:url";
import type { JsonObject } from "@bufbuild/protobuf";
import { stopChild } from "../../support/child-process.js";
import { environmentWithoutSettings, PROJECT } from "../../support/project.js";
import { tempDir } from "../../support/temp-dir.js";

/** The name by which clients reach both services, so that issuer and audience of tokens are the same. */
export const BASE_URL = "http://arbor.example";

/** A running service. */
export interface Side {
  readonly name: string;
  readonly port: number;
  /** Where it listens. */
  readonly url: string;
  readonly data: string;
  /** Runs a command on its data, and returns what it prints. @param skewMs how far its clock is ahead */
  command(args: readonly string[], skewMs?: number): Promise<string>;
  /** The lines of its log, as objects. */
  readLog(): readonly JsonObject[];
  /** How the process ended, with the end of its log; undefined while it runs. */
  describeEnd(): string | undefined;
  /** Begins to end the process by SIGTERM; resolves when it has ended. */
  stop(): Promise<void>;
}

const STEADY = pathToFileURL(fileURLToPath(new URL("steady.mjs", import.meta.url))).href;
const KEPT_LINES = 20;
const STOP_MS = 40_000;

/** What is started. */
export interface SideOptions {
  readonly name: string;
  /** A built checkout. */
  readonly checkout: string;
  /** Settings by their names in camelCase. */
  readonly settings: Readonly<Record<string, string | boolean>>;
  /** Whether a program that mounts a service is started, in place of `arbor serve`. */
  readonly mounts: boolean;
}

/** Starts a service on an empty data directory. */
export async function startSide({ name, checkout, settings, mounts }: SideOptions): Promise<Side> {
  const main = join(checkout, "dist", "main.js");
  if (!existsSync(main)) throw new Error(`${checkout} is not built: npm run build`);
  const folder = tempDir();
  const data = join(folder, "data");
  const log = join(folder, "log");
  let processes = 0;

  function start(program: readonly string[], stderr: "pipe" | number, skewMs = 0): ChildProcess {
    const steady = { COMPARE_PROCESS: String(processes++), COMPARE_SKEW_MS: String(skewMs) };
    const env = { ...environmentWithoutSettings(), ...steady };
    const args = ["--import", STEADY, ...program];
    return spawn(process.execPath, args, { cwd: folder, env, stdio: ["ignore", "pipe", stderr] });
  }

  async function command(args: readonly string[], skewMs = 0): Promise<string> {
    const child = start([main, ...args, "--data", data, "--base-url", BASE_URL], "pipe", skewMs);
    const { stdout, stderr } = child as ChildProcess & { stdout: NodeJS.ReadableStream; stderr: NodeJS.ReadableStream };
    const [out, error] = await Promise.all([text(stdout), text(stderr), once(child, "close")]);
    if (child.exitCode !== 0)
      throw new Error(`${name}: arbor ${args.join(" ")} ended with ${child.exitCode}: ${error}`);
    return out;
  }

  const all = { listen: "127.0.0.1:0", baseUrl: BASE_URL, data, accessLog: "all", metricsListen: "off", ...settings };
  const program = mounts ? [writeProgram(folder, checkout), JSON.stringify(all)] : [main, "serve", ...flagsOf(all)];
  const child = start(program, openSync(log, "w"));
  process.once("exit", () => child.kill("SIGKILL"));
  let ended: string | undefined;
  const closed = once(child, "close").then(([code, signal]) => {
    ended = `ended with ${code ?? signal}: ${readFileSync(log, "utf8").trimEnd().split("\n").slice(-KEPT_LINES).join("\n")}`;
  });
  const url = await new Promise<string>((resolve, reject) => {
    createInterface({ input: child.stdout as NodeJS.ReadableStream }).on("line", (line) => {
      const found = /^arbor listening on (\S+)$/.exec(line)?.[1];
      if (found !== undefined) resolve(found);
    });
    void closed.then(() => reject(new Error(`${name} ${ended}`)));
  });
  return {
    name,
    port: Number(new URL(url).port),
    url,
    data,
    command,
    readLog: () => readFileSync(log, "utf8").split("\n").flatMap(parseLine),
    describeEnd: () => ended,
    stop: () => stopChild(child, closed, STOP_MS),
  };
}

function parseLine(line: string): JsonObject[] {
  return line.startsWith("{") ? [JSON.parse(line) as JsonObject] : [];
}

function flagsOf(settings: Readonly<Record<string, string | boolean>>): string[] {
  return Object.entries(settings).flatMap(([name, value]) => {
    const flag = `--${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
    return value === true ? [flag] : [flag, String(value)];
  });
}

// The package as it would be installed, beside the program.
function writeProgram(folder: string, checkout: string): string {
  const modules = join(folder, "node_modules");
  mkdirSync(modules);
  symlinkSync(checkout, join(modules, "arbor-platform"));
  for (const scope of ["@connectrpc", "@bufbuild"])
    symlinkSync(join(checkout, "node_modules", scope), join(modules, scope));
  writeFileSync(join(folder, "package.json"), '{"type":"module"}');
  cpSync(join(PROJECT, "test/support/library/library_pb.js"), join(folder, "library_pb.js"));
  const program = join(folder, "program.mjs");
  cpSync(fileURLToPath(new URL("mounted-program.mjs", import.meta.url)), program);
  return program;
}
