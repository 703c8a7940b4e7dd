// Lets the primary of a PostgreSQL cluster fail again and again while two nodes of the service are written to, and compares
// what was acknowledged with what is stored.
import { type ChildProcess, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { text } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import { grpcApi, restApi } from "../faults/api.js";
import { Recorder } from "../faults/recorder.js";
import { startWriters } from "../faults/writers.js";
import { environmentWithoutSettings, PROJECT, scriptArguments } from "../support/project.js";
import { Cluster, type Fault } from "./cluster.js";

const FAULTS: readonly Fault[] = ["database killed", "machine killed", "machine stopped"];
const BASE_URL = "http://arbor.example";
const LOAD_MS = 2_000;
/** For how long the standby receives nothing before every second fault. */
const STANDBY_PAUSE_MS = 1_000;
const MAX_OUTAGE_MS = 90_000;

/** One failover. */
export interface Failover {
  readonly fault: Fault;
  /** The longest time without an acknowledged write or a read, in milliseconds. */
  readonly writeGapMs: number;
  readonly readGapMs: number;
  /** How long until the failed machine was a standby again. */
  readonly rejoinMs: number;
}

export interface CampaignResult {
  readonly failovers: readonly Failover[];
  readonly acknowledged: number;
  readonly unanswered: number;
  readonly lost: readonly string[];
  readonly problems: readonly string[];
}

export interface CampaignOptions {
  /** A directory that the user postgres may read. */
  readonly directory: string;
  /** Where PostgreSQL's programs are. */
  readonly binaries: string;
  readonly failovers: number;
  /** The standby is asynchronous, so that acknowledged writes are lost. */
  readonly control: boolean;
  readonly onFailover: (failover: Failover) => void;
}

/** Runs a campaign. */
export async function runCampaign(options: CampaignOptions): Promise<CampaignResult> {
  const { directory, binaries, control } = options;
  const cluster = await Cluster.start(directory, { binaries, synchronous: !control });
  const nodes: Node[] = [];
  try {
    const masterKey = join(directory, "master.key");
    writeFileSync(masterKey, `${randomBytes(32).toString("base64")}\n`, { mode: 0o600 });
    const flags = ["--database-url", cluster.url, "--master-key-file", masterKey];
    const owner = JSON.parse(
      await runArbor(["bootstrap", "--org", "failover.example", "--base-url", BASE_URL, "--json", ...flags]),
    ) as { group: string; token: string };
    for (let n = 0; n < 2; n++) nodes.push(await startNode([...flags, "--base-url", BASE_URL]));
    return await runFailovers(cluster, nodes, owner, flags, options);
  } finally {
    for (const { child } of nodes) child.kill("SIGKILL");
    await cluster.stop();
  }
}

async function runFailovers(
  cluster: Cluster,
  nodes: readonly Node[],
  { group, token }: { group: string; token: string },
  flags: readonly string[],
  options: CampaignOptions,
): Promise<CampaignResult> {
  const recorder = new Recorder();
  const apis = nodes.flatMap(({ url }) => [restApi(url, token), grpcApi(url, token)]);
  // REST of one node, then gRPC of the other: what is written through one node is read on the other.
  const order = [0, 3, 1, 2, 0, 3].map((n) => apis[n] as (typeof apis)[number]);
  const role = await findViewer(nodes[0] as Node, token);
  const writers = startWriters({ recorder, apis: order, group, role, pauseMs: 10 });
  const failovers: Failover[] = [];
  for (let n = 0; n < options.failovers; n++) {
    const fault = FAULTS[n % FAULTS.length] as Fault;
    await sleep(LOAD_MS);
    writers.resetGaps();
    const resume = options.control || n % 2 === 1 ? await cluster.stopStandby() : undefined;
    if (resume !== undefined) await sleep(STANDBY_PAUSE_MS);
    const promoted = cluster.fail(fault);
    resume?.();
    const restore = await promoted;
    await untilWritten(recorder);
    const gaps = { writeGapMs: writers.longestWriteGapMs(), readGapMs: writers.longestReadGapMs() };
    const startMs = performance.now();
    await restore();
    await cluster.untilReplicated();
    const failover = { fault, ...gaps, rejoinMs: performance.now() - startMs };
    failovers.push(failover);
    options.onFailover(failover);
  }
  await writers.stop();
  for (const api of apis) api.close();
  const { lost, problems } = await recorder.compare((sql) => cluster.query(sql));
  const all = [...problems, ...writers.wrong.map((text) => `wrong answer: ${text}`), ...writers.unexpected];
  for (const { child } of nodes) if (child.exitCode !== null) all.push(`a node ended with ${child.exitCode}`);
  for (const { url } of nodes) {
    const { status } = await fetch(`${url}/readyz`);
    if (status !== 200) all.push(`readiness is ${status} at the end`);
  }
  all.push(...(await verifyDatabase(flags)));
  const { acknowledged, unanswered } = recorder;
  return { failovers, acknowledged, unanswered, lost, problems: all };
}

async function untilWritten(recorder: Recorder): Promise<void> {
  const before = recorder.acknowledged;
  const endMs = performance.now() + MAX_OUTAGE_MS;
  while (recorder.acknowledged < before + 10) {
    if (performance.now() > endMs) throw new Error(`no write was acknowledged for ${MAX_OUTAGE_MS} ms`);
    await sleep(50);
  }
}

// The sealer is a background job, so that an audit log without unsealed rows shows that jobs run again.
async function verifyDatabase(flags: readonly string[]): Promise<string[]> {
  try {
    await runArbor(["check", ...flags]);
    for (let tries = 0; tries < 100; tries++) {
      const report = await runArbor(["audit", "verify", ...flags]);
      if (report.split("\n").every((line) => line === "" || line.endsWith(", 0 unsealed"))) return [];
      await sleep(1_000);
    }
    return ["the audit log was not sealed within 100 s"];
  } catch (error) {
    return [String(error)];
  }
}

interface Node {
  readonly url: string;
  readonly child: ChildProcess;
}

async function startNode(flags: readonly string[]): Promise<Node> {
  const args = ["serve", ...flags, "--listen", "127.0.0.1:0", "--log-level", "fatal", "--access-log", "off"];
  const child = spawnArbor(args);
  if (child.stdout === null) throw new TypeError("the process has no output");
  const [line] = await Promise.race([once(createInterface({ input: child.stdout }), "line"), once(child, "exit")]);
  const url = /^arbor listening on (http:\S+)$/.exec(String(line))?.[1];
  if (url === undefined) throw new Error(`the service did not start: ${line}`);
  return { url, child };
}

async function runArbor(args: readonly string[]): Promise<string> {
  const child = spawnArbor(args);
  if (child.stdout === null || child.stderr === null) throw new TypeError("the process has no output");
  const closed = once(child, "close");
  const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr)]);
  const [code] = await closed;
  if (code !== 0) throw new Error(`arbor ${args.slice(0, 2).join(" ")} ended with ${code}: ${stdout}${stderr}`);
  return stdout;
}

function spawnArbor(args: readonly string[]): ChildProcess {
  return spawn(process.execPath, [...scriptArguments("src/main.ts"), ...args], {
    cwd: PROJECT,
    env: environmentWithoutSettings(),
    stdio: ["ignore", "pipe", "pipe"],
  });
}

async function findViewer({ url }: Node, token: string): Promise<string> {
  const response = await fetch(`${url}/iam/v2beta1/roles?name=viewer`, {
    headers: { authorization: `Bearer ${token}` },
  });
  const { roles } = (await response.json()) as { roles: { uid: string }[] };
  if (roles[0] === undefined) throw new Error("there is no role viewer");
  return roles[0].uid;
}
