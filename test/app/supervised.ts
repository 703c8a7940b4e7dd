// `arbor serve` under a supervisor that starts it again whenever it ends, and writers that never stop.
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { Agent, request } from "node:http";
import { createInterface } from "node:readline";
import { setTimeout as delay } from "node:timers/promises";
import { spawn } from "../support/child-process.js";
import { PROJECT, scriptArguments } from "../support/project.js";

const LANES = 8;

/** How one run of the service ended. */
export interface Ended {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  /** From the fault to the end of the process, in milliseconds. */
  readonly ms: number;
  readonly log: string;
}

/** A service that is started again when it ends. */
export interface Supervised {
  /** Where it listens now. */
  url(): Promise<string>;
  /** Makes it fail and tells how it ended; it is being started again then. */
  fail(): Promise<Ended>;
  stop(): Promise<void>;
}

/**
 * Starts it.
 *
 * @param faults of those in planted-fault.mjs, one for each start; the start after the last has none of its own
 * @param control the process cannot listen for errors that nothing caught
 */
export function supervise(data: string, baseUrl: string, faults: readonly string[], control = false): Supervised {
  let stopping = false;
  let starts = 0;
  let current = start();

  function start() {
    const args = [
      ...scriptArguments("src/main.ts"),
      "serve",
      "--data",
      data,
      "--listen",
      "127.0.0.1:0",
      "--base-url",
      baseUrl,
    ];
    const env = {
      PATH: process.env.PATH,
      TMPDIR: process.env.TMPDIR,
      PLANTED_FAULT: faults[starts++] ?? "timer",
      ...(control && { PLANTED_FAULT_CONTROL: "1" }),
    };
    const preload = ["--import", "./test/app/planted-fault.mjs"];
    const child: ChildProcess = spawn(process.execPath, [...preload, ...args, "--no-access-log"], {
      cwd: PROJECT,
      env,
      stdio: ["ignore", "pipe", "pipe"],
    });
    let log = "";
    child.stderr?.on("data", (chunk) => {
      log += chunk;
    });
    const url = new Promise<string>((resolve) => {
      if (child.stdout === null) throw new TypeError("the process has no output");
      createInterface({ input: child.stdout }).once("line", (line) => resolve(line.replace("arbor listening on ", "")));
    });
    const closed = once(child, "close").then(([code, signal]) => {
      if (!stopping) current = start();
      return { code, signal, log };
    });
    return { child, url, closed };
  }

  return {
    url: () => current.url,
    async fail() {
      const { child, url, closed } = current;
      await url;
      const startMs = performance.now();
      child.kill("SIGUSR2");
      const ended = await closed;
      return { ...ended, ms: performance.now() - startMs };
    },
    async stop() {
      stopping = true;
      current.child.kill("SIGTERM");
      await current.closed;
    },
  };
}

/** What writers were told. */
export interface Written {
  /** The names of groups whose creation was acknowledged. */
  readonly acknowledged: Set<string>;
  /** The names of groups of which no response came. */
  readonly unanswered: Set<string>;
  /** HTTP statuses of refused calls and how many there were of each. */
  readonly refused: Map<number, number>;
  /** Ends the writers. */
  stop(): Promise<void>;
}

/** Creates groups in several lanes, wherever the service listens at the moment, until told to stop. */
export function startWriters(service: Supervised, token: string, parent: string): Written {
  const written = {
    acknowledged: new Set<string>(),
    unanswered: new Set<string>(),
    refused: new Map<number, number>(),
  };
  let stopped = false;
  let count = 0;
  const agent = new Agent({ keepAlive: true });

  async function lane(): Promise<void> {
    while (!stopped) {
      const name = `group ${count++}`;
      const status = await post(`${await service.url()}/iam/v2beta1/groups/${parent}`, token, name, agent);
      if (status === 200) written.acknowledged.add(name);
      else if (status === undefined) written.unanswered.add(name);
      else written.refused.set(status, (written.refused.get(status) ?? 0) + 1);
      if (status !== 200) await delay(20);
    }
  }
  const lanes = Promise.all(Array.from({ length: LANES }, lane));
  return {
    ...written,
    async stop() {
      stopped = true;
      await lanes;
      agent.destroy();
    },
  };
}

function post(url: string, token: string, name: string, agent: Agent): Promise<number | undefined> {
  return new Promise((resolve) => {
    const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
    const req = request(url, { method: "POST", agent, headers }, (res) => {
      res.resume();
      res.on("error", () => resolve(undefined));
      res.on("end", () => resolve(res.statusCode));
    });
    req.on("error", () => resolve(undefined));
    req.end(JSON.stringify({ name }));
  });
}
