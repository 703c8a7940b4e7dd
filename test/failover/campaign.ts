// Lets the primary of a PostgreSQL cluster fail again and again while two nodes of the service are written to, and compares
// what was acknowledged with what is stored.
import { randomBytes } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { grpcApi, restApi } from "../faults/api.js";
import { Recorder } from "../faults/recorder.js";
import { createOwner, findViewer, type Owner, type Service, startService, verifyDatabase } from "../faults/service.js";
import { startWriters } from "../faults/writers.js";
import { Cluster, type Fault } from "./cluster.js";

const FAULTS: readonly Fault[] = ["database killed", "machine killed", "machine stopped", "database killed"];
const LOAD_MS = 2_000;
/** For how long the standby receives nothing before every third fault. */
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
  const nodes: Service[] = [];
  try {
    const masterKey = join(directory, "master.key");
    writeFileSync(masterKey, `${randomBytes(32).toString("base64")}\n`, { mode: 0o600 });
    const flags = ["--database-url", cluster.url, "--master-key-file", masterKey];
    const owner = await createOwner(flags, "failover.example");
    for (let n = 0; n < 2; n++) nodes.push(await startService(flags));
    return await runFailovers(cluster, nodes, owner, flags, options);
  } finally {
    for (const { child } of nodes) child.kill("SIGKILL");
    await cluster.stop();
  }
}

async function runFailovers(
  cluster: Cluster,
  nodes: readonly Service[],
  { group, token }: Owner,
  flags: readonly string[],
  options: CampaignOptions,
): Promise<CampaignResult> {
  const recorder = new Recorder();
  const apis = nodes.flatMap(({ url }) => [restApi(url, token), grpcApi(url, token)]);
  // REST of one node, then gRPC of the other: what is written through one node is read on the other.
  const order = [0, 3, 1, 2, 0, 3].map((n) => apis[n] as (typeof apis)[number]);
  const role = await findViewer(nodes[0] as Service, token);
  const writers = startWriters({ recorder, apis: order, group, role, pauseMs: 50 });
  const failovers: Failover[] = [];
  for (let n = 0; n < options.failovers; n++) {
    const fault = FAULTS[n % FAULTS.length] as Fault;
    await sleep(LOAD_MS);
    writers.resetGaps();
    const restore = await cluster.fail(fault, options.control || n % 3 === 1 ? STANDBY_PAUSE_MS : 0);
    const startMs = performance.now();
    // Without a standby the new primary acknowledges nothing.
    await restore();
    await untilWritten(recorder);
    const gaps = { writeGapMs: writers.longestWriteGapMs(), readGapMs: writers.longestReadGapMs() };
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
