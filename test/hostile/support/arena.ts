// The service under attack with the good client beside it: one row after the
// other, each judged by what the good client saw, by memory, and by whether the
// process is still the same.
import { type ChildProcess, execFileSync } from "node:child_process";
import { appendFileSync } from "node:fs";
import { createServer } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { tempDir } from "../../support/temp-dir.js";
import type { Outcome } from "./attack.js";
import type { AttackOrder, AttackReport } from "./attack-process.js";
import { type Demands, type Figures, faultsIn, JUDGES_TIMES, SLICE_MS } from "./figures.js";
import type { Order } from "./good-client.js";
import { arbor, build, onCpu, ROOT, type ServiceProcess, setUrgency, spawnLoad, startService } from "./service.js";
import { type GoodWorld, makeWorld, type Target } from "./world.js";

/** Whether this is the long run of `npm run campaign -- long`. */
export const IS_CAMPAIGN = process.env.HOSTILE_CAMPAIGN !== undefined;
/** How many calls the good client makes beside each attack. */
export const CALLS = Number(process.env.HOSTILE_CALLS ?? (IS_CAMPAIGN ? 3_000 : 1_000));
const CALLS_A_SECOND = 100;
const MIB = 1024 * 1024;
/** What buffered requests and responses may take together above an idle service, in MiB. */
const BUFFERED_MIB = 512;
const WARM_UP_MS = 3_000;
const UNDISTURBED_CALLS = Math.min(CALLS, IS_CAMPAIGN ? 2_000 : 700);
const PREPARE_MS = 300_000;
const RECOVER_MS = 15_000;
const STOP_MS = 25_000;
/** How many attacks share a process. */
const TOGETHER = 5;
const ISSUER_PORTS = 2;

/** What one row is. */
export interface Row {
  readonly name: string;
  /** Files of `test/hostile/attacks`, which run at once. */
  readonly attacks: readonly string[];
  /** How much resident memory the service may have above its idle memory, in MiB; 512 unless given. */
  readonly ceilingMib?: number;
  /** How many calls the good client makes at least. */
  readonly calls?: number;
  /**
   * Whether what attacks are answered is judged as well; it is, unless given. Many at once from a few addresses hold
   * each other up, as they should.
   */
  readonly judgesResponses?: boolean;
  /** Goes on with the same process although a round before failed, as long as it lives. */
  readonly keep?: boolean;
}

/** What came of a row. */
export interface RowResult {
  readonly figures: Figures;
  readonly peakMib: number;
  /** What is wrong; empty when the row holds. */
  readonly faults: readonly string[];
}

/** The service and the good client. */
export interface Arena {
  readonly service: ServiceProcess;
  readonly undisturbed: Figures;
  readonly target: Target;
  /** The service and what attacks are told of it; starts it anew where a row before has ended or spoilt it. */
  ready(): Promise<{ readonly service: ServiceProcess; readonly target: Target }>;
  /** Attacks, and judges. Starts the service anew where the row before has ended it. */
  run(row: Row): Promise<RowResult>;
  /** The good client rests until the next row. */
  rest(): Promise<void>;
  close(): Promise<void>;
}

interface Started {
  readonly service: ServiceProcess;
  readonly good: GoodWorld;
  readonly target: Target;
  readonly undisturbed: Figures;
  readonly idleMib: number;
}

/** Starts both and lets the good client call undisturbed. @param flags more of `arbor serve` */
export async function openArena(...flags: readonly string[]): Promise<Arena> {
  pinSelf();
  const client = spawnLoad("./good-client.ts");
  setUrgency(client, "measured");
  const origin = await firstMessage(client);
  const ports = await freePorts(ISSUER_PORTS);
  const trusted = [origin, ...ports.map((port) => `http://127.0.0.1:${port}`)].join(",");
  let orders = 0;
  const order = <T>(what: { readonly do: "begin" | "end" | "count" | "rest" } | Omit<Order & { do: "call" }, "id">) =>
    new Promise<T>((resolve, reject) => {
      const id = ++orders;
      const onMessage = (response: { id: number; value: T }) => {
        if (response.id !== id) return;
        client.off("message", onMessage);
        resolve(response.value);
      };
      client.on("message", onMessage);
      client.send({ ...what, id }, (error) => error && reject(error));
    });

  async function start(): Promise<Started> {
    const service = await startService(
      tempDir(),
      "--no-access-log",
      "--trusted-issuers",
      trusted,
      ...(await quotaFlags()),
      ...flags,
    );
    const { good, target } = await makeWorld(service, origin, ports);
    await order({ do: "call", world: good, isNew: true });
    await sleep(WARM_UP_MS);
    await order({ do: "begin" });
    await countTo(UNDISTURBED_CALLS, service);
    const undisturbed = await order<Figures>({ do: "end" });
    const idleMib = service.rssBytes() / MIB;
    console.log(`undisturbed: ${describeFigures(undisturbed)}, idle ${idleMib.toFixed(0)} MiB`);
    return { service, good, target, undisturbed, idleMib };
  }

  // Until so many calls count, however busy the machine is; three times as long as they take at the most.
  async function countTo(calls: number, service: ServiceProcess): Promise<void> {
    const endMs = performance.now() + (3_000 * calls) / CALLS_A_SECOND;
    while (performance.now() < endMs && service.alive()) {
      await sleep(SLICE_MS);
      if ((await order<number>({ do: "count" })) >= calls) return;
    }
  }

  let current = await start();
  let isSpoilt = false;

  // The next row does not pay for what a failed one left.
  async function ready(): Promise<Started> {
    if (!isSpoilt && (await isWell(current.service))) return current;
    await order({ do: "rest" });
    await current.service.stop();
    isSpoilt = false;
    current = await start();
    return current;
  }

  async function judge(row: Row): Promise<RowResult> {
    const {
      name,
      attacks,
      ceilingMib = BUFFERED_MIB,
      calls = CALLS,
      judgesResponses: judgesAnswers = true,
      keep,
    } = row;
    const { service, target, undisturbed, idleMib, good } = keep && current.service.alive() ? current : await ready();
    await order({ do: "call", world: good, isNew: false });
    const attackers = await Promise.all(chunksOf(attacks, TOGETHER).map((names) => startAttacks(names, target)));
    service.resetPeak();
    service.takeWorkerEnds();
    await order({ do: "begin" });
    for (const attacker of attackers) attacker.begin();
    await countTo(calls, service);
    const outcomes = (await Promise.all(attackers.map((attacker) => attacker.stop()))).flat();
    const figures = await order<Figures>({ do: "end" });
    const peakMib = service.peakBytes() / MIB;
    const p99Ms = JUDGES_TIMES ? 10 * undisturbed.p99Ms : undefined;
    const demands: Demands = { calls: service.alive() ? calls : 0, answered: 0.999, p99Ms };
    const workerEnds = service.takeWorkerEnds();
    const faults = [
      ...(service.alive() ? [] : [service.ending()]),
      ...(workerEnds === 0 ? [] : [`${workerEnds} workers ended`]),
      ...(JUDGES_TIMES && undisturbed.counted < UNDISTURBED_CALLS / 2
        ? ["the machine is too busy to measure anything"]
        : []),
      ...faultsIn(figures, demands),
      ...(peakMib > idleMib + ceilingMib
        ? [`${peakMib.toFixed(0)} MiB resident, above ${(idleMib + ceilingMib).toFixed(0)}`]
        : []),
      ...(judgesAnswers ? outcomes.flatMap(({ problems }) => problems) : []),
    ];
    isSpoilt = faults.length > 0;
    record({ name, faults, figures, peakMib, idleMib, undisturbed, done: outcomes.map((outcome) => outcome.done) });
    const verdict = faults.length === 0 ? "held" : `FAILED: ${faults.join(" | ")}`;
    const done = outcomes.map((outcome) => JSON.stringify(outcome.done)).join(" ");
    console.log(`${name}: ${describeFigures(figures)}, ${peakMib.toFixed(0)} MiB, sent ${done}: ${verdict}`);
    return { figures, peakMib, faults };
  }

  return {
    get service() {
      return current.service;
    },
    get undisturbed() {
      return current.undisturbed;
    },
    get target() {
      return current.target;
    },
    ready,
    run: judge,
    rest: () => order({ do: "rest" }),
    async close() {
      client.disconnect();
      await current.service.stop();
    },
  };
}

// Attackers get more root groups than people usually may, so that what they see is dear to list.
async function quotaFlags(): Promise<readonly string[]> {
  build();
  return (await arbor("serve", "--help")).includes("--quotas") ? ["--quotas", "roots=20000"] : [];
}

/** The figures in one line. */
export function describeFigures(figures: Figures): string {
  const { calls, answered, p50Ms, p99Ms, lagMs, lateSlices, slices } = figures;
  return (
    `${calls} calls, ${(answered * 100).toFixed(2)} % answered, p50 ${p50Ms.toFixed(1)} ms, p99 ${p99Ms.toFixed(1)} ms ` +
    `(own lag up to ${lagMs.toFixed(0)} ms, ${lateSlices} of ${slices} slices not counted)`
  );
}

interface Attacker {
  begin(): void;
  stop(): Promise<readonly Outcome[]>;
}

async function startAttacks(names: readonly string[], target: Target): Promise<Attacker> {
  const child = spawnLoad("./attack-process.ts", ...names);
  setUrgency(child, "attack");
  const send = (order: AttackOrder) => child.connected && child.send(order);
  const reports: AttackReport[] = [];
  const waiting = new Set<() => void>();
  const wake = () => {
    for (const one of waiting) one();
  };
  child.on("message", (report: AttackReport) => {
    reports.push(report);
    wake();
  });
  child.on("exit", wake);
  const find = <S extends AttackReport["event"]>(event: S) =>
    reports.find((report): report is Extract<AttackReport, { event: S }> => report.event === event);
  async function until<S extends AttackReport["event"]>(event: S, ms: number) {
    const endMs = performance.now() + ms;
    while (find(event) === undefined && find("failed") === undefined && performance.now() < endMs) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, endMs - performance.now());
        waiting.add(() => {
          clearTimeout(timer);
          resolve();
        });
      });
      waiting.clear();
    }
    return find(event);
  }
  await until("started", PREPARE_MS);
  send({ do: "prepare", target });
  if ((await until("prepared", PREPARE_MS)) === undefined) {
    child.kill("SIGKILL");
    throw new Error(`${names.join(", ")} could not be prepared: ${find("failed")?.reason ?? "it took too long"}`);
  }
  return {
    begin: () => void send({ do: "begin" }),
    async stop() {
      send({ do: "stop" });
      const over = await until("over", STOP_MS);
      child.kill("SIGKILL");
      const broken = { done: {}, problems: [`${names.join(", ")} broke: ${find("failed")?.reason ?? "no report"}`] };
      return over === undefined ? [broken] : Object.values(over.outcomes);
    },
  };
}

// Whether it answers as fast as an idle service does, within a while.
async function isWell(service: ServiceProcess): Promise<boolean> {
  const endMs = performance.now() + RECOVER_MS;
  while (service.alive() && performance.now() < endMs) {
    const startMs = performance.now();
    const response = await fetch(`${service.url}/readyz`, { signal: AbortSignal.timeout(2_000) }).catch(
      () => undefined,
    );
    if (response?.ok && performance.now() - startMs < 100) return true;
    await sleep(100);
  }
  return false;
}

function firstMessage(child: ChildProcess): Promise<string> {
  return new Promise((resolve, reject) => {
    child.once("message", ({ value }: { value: string }) => resolve(value));
    child.once("exit", (code) => reject(new Error(`the good client ended with ${code}`)));
  });
}

function chunksOf<T>(all: readonly T[], size: number): T[][] {
  return Array.from({ length: Math.ceil(all.length / size) }, (_, i) => all.slice(i * size, (i + 1) * size));
}

async function freePorts(count: number): Promise<number[]> {
  const servers = await Promise.all(
    Array.from({ length: count }, () => {
      const server = createServer();
      return new Promise<typeof server>((resolve) => server.listen(0, "127.0.0.1", () => resolve(server)));
    }),
  );
  return Promise.all(
    servers.map((server) => {
      const address = server.address();
      const port = typeof address === "object" && address !== null ? address.port : 0;
      return new Promise<number>((resolve) => server.close(() => resolve(port)));
    }),
  );
}

// For those who compare runs: one line of JSON a row, in the file that HOSTILE_RESULTS names.
function record(row: object): void {
  const file = process.env.HOSTILE_RESULTS;
  if (file !== undefined) appendFileSync(file, `${JSON.stringify({ root: ROOT, ...row })}\n`);
}

function pinSelf(): void {
  const [program, ...args] = onCpu("load");
  if (program === undefined) console.log("one processor alone, or no taskset: service and load share it");
  else execFileSync(program, ["-cp", args[1] ?? "", String(process.pid)], { stdio: "ignore" });
}
