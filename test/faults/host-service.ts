// The service on a machine with faults: a process that is written to, its log, its metrics, and what it answers.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:net";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { openDatabase } from "../../src/store/sqlite/driver.js";
import { parseMetrics } from "../support/metrics.js";
import { environmentWithoutSettings, PROJECT, scriptArguments } from "../support/project.js";
import { grpcApi, restApi } from "./api.js";
import { Recorder } from "./recorder.js";
import { BASE_URL, createOwner, findViewer, type Owner } from "./service.js";
import { type Experience, startWriters } from "./writers.js";

/** A line of the log. */
export interface LogLine {
  readonly level: string;
  readonly msg: string;
  readonly [name: string]: unknown;
}

/** How to start a service. */
export interface HostServiceOptions {
  readonly data: string;
  /** Arguments of node before the program. */
  readonly preload?: readonly string[];
  /** A program that starts node, such as prlimit with its arguments. */
  readonly wrapper?: readonly string[];
  readonly settings?: Readonly<Record<string, string>>;
}

/** What one request of each sort is answered. */
export interface Responses {
  readonly restWrite: string;
  readonly grpcWrite: string;
  readonly restRead: string;
  readonly readyz: string;
  readonly healthz: string;
}

/** A data directory and the service on it. What its writers are told is recorded. */
export class HostService {
  readonly data: string;
  readonly recorder = new Recorder();
  readonly lines: LogLine[] = [];
  readonly problems: string[] = [];
  readonly #options: HostServiceOptions;
  #metricsUrl = "";
  #owner: Owner | undefined;
  #role = "";
  #child: ChildProcess | undefined;
  #writers: (Experience & { readonly apis: readonly { close(): void }[] }) | undefined;
  url = "";

  constructor(options: HostServiceOptions) {
    this.data = options.data;
    this.#options = options;
  }

  get pid(): number {
    return this.#child?.pid ?? 0;
  }

  get owner(): Owner {
    if (this.#owner === undefined) throw new TypeError("the service was not started");
    return this.#owner;
  }

  /** Starts the service, and bootstraps it where that was not done. */
  async start(): Promise<void> {
    this.#owner ??= await createOwner(["--data", this.data], "faults.example");
    const port = await findFreePort();
    this.#metricsUrl = `http://127.0.0.1:${port}/metrics`;
    const { wrapper = [], preload = [], settings = {} } = this.#options;
    const serve = [
      "serve",
      "--data",
      this.data,
      "--base-url",
      BASE_URL,
      "--listen",
      "127.0.0.1:0",
      "--access-log",
      "off",
    ];
    const [program = "", ...args] = [
      ...wrapper,
      process.execPath,
      ...preload,
      ...scriptArguments("src/main.ts"),
      ...serve,
    ];
    const env = { ...environmentWithoutSettings(), ARBOR_METRICS_LISTEN: `127.0.0.1:${port}`, ...settings };
    const child = spawn(program, args, { cwd: PROJECT, env, stdio: ["ignore", "pipe", "pipe"] });
    this.#child = child;
    createInterface({ input: child.stderr }).on("line", (line) => {
      if (line.startsWith("{")) this.lines.push(JSON.parse(line) as LogLine);
    });
    const [line] = await Promise.race([once(createInterface({ input: child.stdout }), "line"), once(child, "exit")]);
    const url = /^arbor listening on (http:\S+)$/.exec(String(line))?.[1];
    if (url === undefined) throw new Error(`the service did not start: ${line} ${JSON.stringify(this.lines)}`);
    this.url = url;
    if (this.#role === "") this.#role = await findViewer({ url, child, startMs: 0 }, this.owner.token);
  }

  /** Begins to write over REST and gRPC, a few hundred times a second. */
  write(): Experience {
    const { token, group } = this.owner;
    const apis = [restApi, grpcApi, restApi, grpcApi].map((create) => create(this.url, token));
    const writers = startWriters({ recorder: this.recorder, apis, group, role: this.#role, pauseMs: 10 });
    this.#writers = Object.assign(writers, { apis });
    return writers;
  }

  /** Stops the writers; their wrong reads are problems. */
  async stopWriters(): Promise<void> {
    const writers = this.#writers;
    this.#writers = undefined;
    if (writers === undefined) return;
    await writers.stop();
    for (const api of writers.apis) api.close();
    this.problems.push(...writers.wrong, ...new Set(writers.unexpected));
  }

  /** Sends a signal and waits until the process has ended; kills it after ten seconds. */
  async end(signal: NodeJS.Signals): Promise<void> {
    const child = this.#child;
    this.#child = undefined;
    if (child === undefined || child.exitCode !== null) return;
    const exited = once(child, "exit");
    child.kill(signal);
    const late = setTimeout(() => {
      this.problems.push(`${signal} did not end the service within 10 s`);
      child.kill("SIGKILL");
    }, 10_000);
    await exited;
    clearTimeout(late);
  }

  /** The value of a metric, summed over what has these labels; undefined when it cannot be read. */
  async metric(name: string, labels: Readonly<Record<string, string>> = {}): Promise<number | undefined> {
    try {
      const response = await fetch(this.#metricsUrl, { signal: AbortSignal.timeout(2_000) });
      return parseMetrics(await response.text()).sum(name, labels);
    } catch {
      return undefined;
    }
  }

  /** Waits until a metric has a value that is accepted; otherwise that is a problem. */
  async untilMetric(
    name: string,
    labels: Readonly<Record<string, string>>,
    accept: (value: number) => boolean,
  ): Promise<void> {
    const found = await eventually(async () => {
      const value = await this.metric(name, labels);
      return value !== undefined && accept(value);
    });
    if (!found) this.problems.push(`${name}${JSON.stringify(labels)} is ${await this.metric(name, labels)}`);
  }

  /** Waits for a line of the log; otherwise that is a problem. */
  async untilLogged(text: string): Promise<LogLine | undefined> {
    const find = () => this.lines.find(({ msg }) => msg.includes(text));
    if (!(await eventually(async () => find() !== undefined))) this.problems.push(`not logged: ${text}`);
    return find();
  }

  /** Waits for an acknowledged write, and returns after how many milliseconds it came. */
  async untilWritten(): Promise<number> {
    const startMs = performance.now();
    const before = this.recorder.acknowledged;
    if (!(await eventually(async () => this.recorder.acknowledged > before)))
      this.problems.push("writes did not come back");
    return Math.round(performance.now() - startMs);
  }

  /** Sends one request of each sort. The writes are recorded as all others. */
  async ask(): Promise<Responses> {
    const { token, group } = this.owner;
    const apis = { rest: restApi(this.url, token), grpc: grpcApi(this.url, token) };
    const responseOf = async (calling: Promise<unknown>) =>
      calling.then(
        () => "OK",
        (error: Error & { readonly allowed?: boolean }) =>
          `${error.message.replace(/^(REST|gRPC) \S+ (\w+):.*$/s, "$2")}${error.message.includes("RetryInfo") ? " with RetryInfo" : ""}`,
      );
    const create = (name: "rest" | "grpc") => {
      const key = `recorded ${process.pid} asked ${asked++}`;
      return responseOf(this.recorder.record(key, "1", () => apis[name].create("groups", group, key)));
    };
    const get = async (path: string) => {
      const response = await fetch(this.url + path, { signal: AbortSignal.timeout(5_000) });
      return `${response.status} ${(await response.text()).replace(/^\{"status":"(.*)"\}$/, "$1")}`;
    };
    const responses = {
      restWrite: await create("rest"),
      grpcWrite: await create("grpc"),
      restRead: await responseOf(apis.rest.read("groups", group)),
      readyz: await get("/readyz").catch(String),
      healthz: await get("/healthz").catch(String),
    };
    apis.grpc.close();
    return responses;
  }

  /** Compares what was acknowledged with the database at a path, which nobody has open. */
  async compare(file = join(this.data, "arbor.db")): Promise<readonly string[]> {
    const db = openDatabase(file);
    try {
      if (db.pragma("integrity_check", { simple: true }) !== "ok") this.problems.push("the database is damaged");
      const { lost, problems } = await this.recorder.compare(
        async (sql) => db.prepare(sql).all() as Record<string, unknown>[],
      );
      this.problems.push(...problems);
      return lost;
    } finally {
      db.close();
    }
  }
}

let asked = 0;

/** Tries until it holds; false when it does not within 15 s. */
export async function eventually(holds: () => Promise<boolean>): Promise<boolean> {
  const endMs = performance.now() + 15_000;
  while (performance.now() < endMs) {
    if (await holds()) return true;
    await sleep(100);
  }
  return false;
}

async function findFreePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  server.close();
  await once(server, "close");
  if (address === null || typeof address === "string") throw new TypeError("the server has no port");
  return address.port;
}
