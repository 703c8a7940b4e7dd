// The service and its commands as processes of their own.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { text } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import { environmentWithoutSettings, PROJECT, scriptArguments } from "../support/project.js";

export const BASE_URL = "http://arbor.example";

/** A running service. */
export interface Service {
  readonly url: string;
  readonly child: ChildProcess;
  /** From the start of the process until it listens. */
  readonly startMs: number;
}

/** The organisation that writers write in. */
export interface Owner {
  readonly group: string;
  readonly token: string;
}

/**
 * Starts the service.
 *
 * @param flags where its database is
 * @param preload arguments of node before the program
 * @param port that of its own unless given
 */
export async function startService(
  flags: readonly string[],
  preload: readonly string[] = [],
  port = 0,
): Promise<Service> {
  const beginMs = performance.now();
  const args = ["serve", ...flags, "--base-url", BASE_URL, "--listen", `127.0.0.1:${port}`, "--log-level", "fatal"];
  const child = spawnArbor([...args, "--access-log", "off"], preload);
  if (child.stdout === null || child.stderr === null) throw new TypeError("the process has no output");
  const errors = text(child.stderr);
  const [line] = await Promise.race([once(createInterface({ input: child.stdout }), "line"), once(child, "exit")]);
  const url = /^arbor listening on (http:\S+)$/.exec(String(line))?.[1];
  if (url === undefined) throw new Error(`the service did not start: ${line} ${await errors}`);
  return { url, child, startMs: performance.now() - beginMs };
}

/**
 * Runs a command to its end, and returns its output.
 *
 * @throws Error with its output when it does not end with 0
 */
export async function runArbor(args: readonly string[], preload: readonly string[] = []): Promise<string> {
  const child = spawnArbor(args, preload);
  if (child.stdout === null || child.stderr === null) throw new TypeError("the process has no output");
  const closed = once(child, "close");
  const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr)]);
  const [code] = await closed;
  if (code !== 0) throw new Error(`arbor ${args.slice(0, 2).join(" ")} ended with ${code}: ${stdout}${stderr}`);
  return stdout;
}

/** Creates an organisation in the database that the flags name. */
export async function createOwner(flags: readonly string[], org: string): Promise<Owner> {
  return JSON.parse(await runArbor(["bootstrap", "--org", org, "--base-url", BASE_URL, "--json", ...flags])) as Owner;
}

/** The uid of the built-in role viewer. */
export async function findViewer({ url }: Service, token: string): Promise<string> {
  const response = await fetch(`${url}/iam/v2beta1/roles?name=viewer`, {
    headers: { authorization: `Bearer ${token}` },
  });
  const { roles } = (await response.json()) as { roles: { uid: string }[] };
  if (roles[0] === undefined) throw new Error("there is no role viewer");
  return roles[0].uid;
}

/**
 * Runs `arbor check`, and `arbor audit verify` until all rows are sealed. The service must run: sealing is a background job
 * of it.
 */
export async function verifyDatabase(flags: readonly string[]): Promise<string[]> {
  try {
    await runArbor(["check", ...flags]);
    for (let tries = 0; tries < 60; tries++) {
      const report = await runArbor(["audit", "verify", ...flags]);
      if (report.split("\n").every((line) => line === "" || line.endsWith(", 0 unsealed"))) return [];
      await sleep(1_000);
    }
    return ["the audit log was not sealed in time"];
  } catch (error) {
    return [String(error)];
  }
}

function spawnArbor(args: readonly string[], preload: readonly string[]): ChildProcess {
  return spawn(process.execPath, [...preload, ...scriptArguments("src/main.ts"), ...args], {
    cwd: PROJECT,
    env: environmentWithoutSettings(),
    stdio: ["ignore", "pipe", "pipe"],
  });
}
