// Kills or pauses the node that runs a job, again and again, and looks whether results of two nodes mix.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { openPg } from "../../src/store/pg/open.js";
import type { AuditRow } from "../../src/store/tables/audit.js";
import { scriptArguments } from "../support/project.js";
import { waitUntil } from "../support/wait-until.js";

/** The name of the job. */
export const JOB = "takeover";
/** The pause between two results of a node, in milliseconds. */
export const RESULT_MS = 30;

const NODES = 3;
/** A node that is paused within a transaction keeps its locks until PostgreSQL ends the transaction, after 30 s. */
const MAX_TAKEOVER_MS = 45_000;

/** What a campaign does. */
export interface TakeoverCampaign {
  /** An empty database. */
  readonly url: string;
  /** Every other one by SIGKILL, the others by SIGSTOP and a later SIGCONT. */
  readonly takeovers: number;
  /** Results are written without the check of the fencing number: then some must mix. */
  readonly control?: boolean;
  readonly leaseMs?: number;
}

/** What came of it. */
export interface TakeoverResult {
  readonly results: number;
  /** How many fencing numbers have results. */
  readonly numbers: number;
  /** How many paused nodes woke up, tried to write and were rejected. */
  readonly rejected: number;
  /** Results after a result with a larger number, and numbers with results of two nodes. */
  readonly violations: readonly string[];
  /** From the fault to the next leader, in milliseconds, in ascending order. */
  readonly takeoverMs: readonly number[];
}

/** Runs a campaign. @throws Error when a take-over does not happen in time */
export async function runTakeovers(campaign: TakeoverCampaign): Promise<TakeoverResult> {
  const { url, takeovers, control = false, leaseMs = 600 } = campaign;
  const store = await openPg({ url, poolSize: 2 });
  const nodes: TakeoverNode[] = [];
  let started = 0;
  const start = () => {
    // Clocks that are hours apart must not matter.
    const offsetMs = [0, 3_600_000, -7_200_000][started % 3] ?? 0;
    nodes.push(startNode(url, `node ${++started}`, leaseMs, offsetMs, control));
  };
  const takeoverMs: number[] = [];
  let rejected = 0;
  try {
    for (let i = 0; i < NODES; i++) start();
    let leader = await nextLeader(nodes, 0);
    for (let i = 0; i < takeovers; i++) {
      // At any moment between two results, or within one.
      await sleep(50 + 250 * Math.random());
      const { node, fence } = leader;
      const isPause = i % 2 === 0;
      node.child.kill(isPause ? "SIGSTOP" : "SIGKILL");
      const startMs = performance.now();
      leader = await nextLeader(nodes, fence);
      takeoverMs.push(Math.round(performance.now() - startMs));
      if (!isPause) {
        nodes.splice(nodes.indexOf(node), 1);
        start();
        continue;
      }
      const next = leader;
      await waitUntil(() => next.node.wrote >= next.fence, MAX_TAKEOVER_MS);
      node.child.kill("SIGCONT");
      if (control) await sleep(300);
      else await waitUntil(() => node.late >= fence, MAX_TAKEOVER_MS);
      if (node.late >= fence) rejected++;
    }
  } finally {
    for (const { child } of nodes) await kill(child);
  }
  const rows = await store.read((tx) => tx.audit.listNewest(1_000_000, ""));
  await store.close();
  const { numbers, violations } = checkResults(rows);
  return { results: rows.length, numbers, rejected, violations, takeoverMs: takeoverMs.sort((a, b) => a - b) };
}

/** A process and the last fencing number of each thing it said. */
interface TakeoverNode {
  readonly child: ChildProcess;
  leads: number;
  wrote: number;
  late: number;
}

function startNode(url: string, holder: string, leaseMs: number, offsetMs: number, control: boolean): TakeoverNode {
  const script = scriptArguments("test/jobs/takeover-node.ts");
  const mode = control ? "control" : "fenced";
  const child = spawn(process.execPath, [...script, url, holder, String(leaseMs), String(offsetMs), mode], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const node: TakeoverNode = { child, leads: 0, wrote: 0, late: 0 };
  createInterface({ input: child.stdout }).on("line", (line) => {
    const [what, fence] = line.split(" ");
    if (what === "leads" || what === "wrote" || what === "late") node[what] = Number(fence);
  });
  return node;
}

async function nextLeader(
  nodes: readonly TakeoverNode[],
  after: number,
): Promise<{ node: TakeoverNode; fence: number }> {
  const leader = await waitUntil(() => nodes.find((node) => node.leads > after), MAX_TAKEOVER_MS);
  return { node: leader, fence: leader.leads };
}

async function kill(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exit = once(child, "exit");
  child.kill("SIGKILL");
  await exit;
}

function checkResults(rows: readonly AuditRow[]): { numbers: number; violations: string[] } {
  const violations: string[] = [];
  const holders = new Map<number, string>();
  let last = 0;
  for (const { actorUid, requestId } of [...rows].sort((a, b) => Number(a.subjectUid) - Number(b.subjectUid))) {
    const fence = Number(requestId);
    const holder = holders.get(fence) ?? actorUid;
    holders.set(fence, holder);
    if (holder !== actorUid) violations.push(`${holder} and ${actorUid} wrote results under number ${fence}`);
    if (fence < last) violations.push(`${actorUid} wrote a result under number ${fence} after one under ${last}`);
    last = Math.max(last, fence);
  }
  return { numbers: holders.size, violations };
}
