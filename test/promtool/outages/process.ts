// Outages of processes, of workers, and of the machine.
import assert from "node:assert/strict";
import { once } from "node:events";
import { readdirSync, writeFileSync } from "node:fs";
import { Agent, get } from "node:http";
import { connect } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { execFileSync, spawn } from "../../support/child-process.js";
import { runCommand } from "../../support/command.js";
import { freePort } from "../../support/free-port.js";
import { scrape } from "../../support/metrics.js";
import { environmentWithoutSettings, PROJECT, scriptArguments } from "../../support/project.js";
import { tempDir } from "../../support/temp-dir.js";
import { waitUntil } from "../../support/wait-until.js";
import { workersOf } from "../../support/workers.js";
import { replay } from "../recording.js";
import { type Defer, type Outages, untilMetric, WELL } from "./outage.js";

/** How long a service may run: the longest outage lasts for minutes on a machine with other work. */
const LIMIT_MS = 8 * 60_000;

interface ProcessOptions {
  readonly data?: string;
  readonly settings?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** Arguments of node before the program. */
  readonly preload?: readonly string[];
  /** A program that starts node, with its arguments. */
  readonly wrapper?: readonly string[];
  readonly metricsPort?: number;
  /** Whether nobody reads its log. */
  readonly isUnread?: boolean;
}

/** Starts `arbor serve` as a process of its own. */
async function startProcess(defer: Defer, options: ProcessOptions = {}) {
  const { data = tempDir(), settings = [], env = {}, preload = [], wrapper = [], isUnread = false } = options;
  const metricsPort = options.metricsPort ?? (await freePort());
  const serve = ["serve", "--data", data, "--listen", "127.0.0.1:0", "--metrics-listen", `127.0.0.1:${metricsPort}`];
  const command = [...wrapper, process.execPath, ...preload, ...scriptArguments("src/main.ts"), ...serve, ...settings];
  const child = spawn(command[0] ?? "", command.slice(1), {
    cwd: PROJECT,
    env: { ...environmentWithoutSettings(), ...env },
    stdio: ["ignore", "pipe", "pipe"],
    timeout: LIMIT_MS,
  });
  const kill = async () => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, "exit");
    child.kill("SIGKILL");
    await ended;
  };
  defer(kill);
  let output = "";
  if (!isUnread) child.stderr?.on("data", (chunk: Buffer) => (output += chunk));
  const url = await new Promise<string>((resolve, reject) => {
    let stdout = "";
    child.stdout?.on("data", (chunk: Buffer) => {
      stdout += chunk;
      const found = /^arbor listening on (\S+)$/m.exec(stdout)?.[1];
      if (found !== undefined) resolve(found);
    });
    child.once("exit", (code) => reject(new Error(`the service ended with ${code}: ${output}`)));
  });
  return {
    data,
    url,
    kill,
    child,
    pid: child.pid ?? 0,
    metricsPort,
    metrics: `http://127.0.0.1:${metricsPort}/metrics`,
  };
}
type Started = Awaited<ReturnType<typeof startProcess>>;

const startTwoWorkers = async (defer: Defer) => {
  const service = await startProcess(defer, { settings: ["--workers", "2"] });
  await untilMetric(service, "arbor_workers", {}, (workers) => workers === 2);
  return service;
};

const killWorker = ({ pid }: Started) => process.kill(workersOf(pid)[0] ?? assert.fail("no worker"), "SIGKILL");

/** Kills workers, and stops the processes that replace them before they are ready. */
async function freezeReplacements(service: Started, count: number): Promise<void> {
  const before = workersOf(service.pid);
  for (const pid of before.slice(0, count)) process.kill(pid, "SIGKILL");
  const frozen = new Set<number>();
  await waitUntil(() => {
    for (const pid of workersOf(service.pid)) {
      if (before.includes(pid) || frozen.has(pid)) continue;
      process.kill(pid, "SIGSTOP");
      frozen.add(pid);
    }
    return frozen.size === count;
  }, 60_000);
}

const BASE = ["--base-url", "https://arbor.example"];

/** Creates a data directory with an organisation and a token of its owner, for a service with the settings of `BASE`. */
async function bootstrap() {
  const data = tempDir();
  const made = await runCommand(["bootstrap", "--org", "acme.example", "--json", "--data", data, ...BASE]);
  return { data, ...(JSON.parse(made.stdout) as { group: string; token: string }) };
}

/** Lists roles over some connections, on each of them as soon as the list before is there. */
function keepBusy({ url }: Started, token: string, connections: number, defer: Defer): void {
  const agent = new Agent({ keepAlive: true, maxSockets: connections });
  const options = { agent, headers: { authorization: `Bearer ${token}` } };
  let isOver = false;
  const send = () => {
    if (!isOver) get(`${url}/iam/v2beta1/roles`, options, (res) => res.resume().on("close", send)).on("error", send);
  };
  for (let i = 0; i < connections; i++) send();
  defer(() => {
    isOver = true;
    agent.destroy();
  });
}

/** How many files a process has open. */
const countFiles = (pid: number) => readdirSync(`/proc/${pid}/fd`).length;

export const processOutages: Outages = {
  "the process is killed": {
    alerts: ["ArborDown", "ArborNoMetrics"],
    async run(recording, defer) {
      const service = await startProcess(defer);
      await recording.scrape(service.metrics, WELL);
      recording.beginOutage();
      await service.kill();
      await recording.scrape(service.metrics, 2);
      recording.hold(6);
    },
  },
  "the process is killed again and again, and is down just now": {
    alerts: ["ArborRestarts"],
    async run(recording, defer) {
      let service = await startProcess(defer);
      await recording.scrape(service.metrics, WELL);
      recording.beginOutage();
      for (let i = 0; i < 3; i++) {
        await service.kill();
        service = await startProcess(defer, { data: service.data, metricsPort: service.metricsPort });
        await recording.scrape(service.metrics, 1);
      }
      await service.kill();
      await recording.scrape(service.metrics, 1);
    },
  },
  "no worker is ready": {
    alerts: ["ArborNoWorker", "ArborWorkersMissing"],
    async run(recording, defer) {
      const service = await startTwoWorkers(defer);
      await recording.scrape(service.metrics, WELL);
      recording.beginOutage();
      await freezeReplacements(service, 2);
      await untilMetric(service, "arbor_workers", {}, (workers) => workers === 0);
      await recording.scrape(service.metrics, 2);
      recording.hold(6);
    },
  },
  "one worker of two is not ready": {
    alerts: ["ArborWorkersMissing"],
    async run(recording, defer) {
      const service = await startTwoWorkers(defer);
      await recording.scrape(service.metrics, WELL);
      recording.beginOutage();
      await freezeReplacements(service, 1);
      await untilMetric(service, "arbor_workers", {}, (workers) => workers === 1);
      await recording.scrape(service.metrics, 2);
      recording.hold(6);
    },
  },
  "workers are killed, never the same twice": {
    alerts: ["ArborWorkersDie"],
    async run(recording, defer) {
      const service = await startTwoWorkers(defer);
      await recording.scrape(service.metrics, WELL);
      recording.beginOutage();
      for (let i = 1; i <= 3; i++) {
        killWorker(service);
        await untilMetric(service, "arbor_worker_exits_total", {}, (exits) => exits === i);
        await untilMetric(service, "arbor_workers", {}, (workers) => workers === 2);
        await recording.scrape(service.metrics, 1);
      }
    },
  },
  "the process gets the processor for moments only": {
    alerts: ["ArborEventLoopDelay"],
    async run(recording, defer) {
      const service = await startProcess(defer);
      await recording.scrape(service.metrics, WELL, () => sleep(300));
      recording.beginOutage();
      await recording.scrape(service.metrics, 8, async () => {
        for (let i = 0; i < 3; i++) {
          service.child.kill("SIGSTOP");
          await sleep(400);
          service.child.kill("SIGCONT");
          await sleep(20);
        }
      });
    },
  },
  "callers send more than the event loop can serve": {
    alerts: ["ArborEventLoopBusy"],
    gapMs: 4_000,
    async run(recording, defer) {
      const { data, token } = await bootstrap();
      const service = await startProcess(defer, { data, settings: ["--access-log", "off", ...BASE] });
      await recording.scrape(service.metrics, WELL);
      recording.beginOutage();
      keepBusy(service, token, 300, defer);
      // What a machine with other work measures varies: it may take longer until the rate was high all the time.
      await recording.scrape(service.metrics, 18);
      do await recording.scrape(service.metrics, 4);
      while (recording.scrapes.length < 80 && !(await replay(recording, "ArborEventLoopBusy")).inOutage);
    },
  },
  "the limit of open files is lowered": {
    alerts: ["ArborFileShortage"],
    async run(recording, defer) {
      const service = await startProcess(defer);
      await recording.scrape(service.metrics, WELL);
      recording.beginOutage();
      execFileSync("prlimit", [`--pid=${service.pid}`, `--nofile=10:20000`]);
      await waitUntil(() => countFiles(service.pid) > 10);
      await recording.scrape(service.metrics, 2, () => sleep(1_500));
    },
  },
  "addresses have more connections open than the process may have": {
    alerts: ["ArborConnectionsFull"],
    async run(recording, defer) {
      const { data, group, token } = await bootstrap();
      const service = await startProcess(defer, { data, settings: BASE, wrapper: ["prlimit", "--nofile=300:300"] });
      const { hostname, port } = new URL(service.url);
      const head = [
        `POST /iam/v2beta1/groups/${group} HTTP/1.1`,
        ...["Host: arbor.example", `Authorization: Bearer ${token}`, "Content-Type: application/json"],
        ...["Content-Length: 10", "", ""],
      ].join("\r\n");
      await recording.scrape(service.metrics, WELL);
      recording.beginOutage();
      await waitUntil(async () => {
        for (let i = 0; i < 50; i++) {
          const socket = connect({ port: Number(port), host: hostname, localAddress: `127.0.0.${2 + (i % 20)}` });
          socket.on("error", () => {});
          socket.write(head);
          defer(() => socket.destroy());
        }
        const labels = { reason: "connections" };
        return ((await scrape(service.metrics)).sum("arbor_requests_rejected_total", labels) ?? 0) > 0;
      }, 60_000);
      await recording.scrape(service.metrics, 1);
    },
  },
  "nothing reads the log": {
    alerts: ["ArborLogLost"],
    async run(recording, defer) {
      const service = await startProcess(defer, { isUnread: true });
      await recording.scrape(service.metrics, WELL);
      recording.beginOutage();
      const path = `/${"x".repeat(500)}`;
      await waitUntil(async () => {
        await Promise.all(Array.from({ length: 200 }, async () => (await fetch(service.url + path)).arrayBuffer()));
        return ((await scrape(service.metrics)).sum("arbor_log_lines_lost_total") ?? 0) > 0;
      }, 60_000);
      await recording.scrape(service.metrics, 1);
    },
  },
  "the clock of the machine is set": {
    alerts: ["ArborClockJump"],
    async run(recording, defer) {
      const file = join(tempDir(), "clock");
      const preload = ["--import", join(PROJECT, "test/faults/set-clock.mjs")];
      const service = await startProcess(defer, { preload, env: { CLOCK_FILE: file } });
      await recording.scrape(service.metrics, WELL);
      recording.beginOutage();
      writeFileSync(file, String(600_000));
      await untilMetric(service, "arbor_clock_jumps_total", {}, (jumps) => jumps > 0);
      await recording.scrape(service.metrics, 1);
    },
  },
  "the file system of the database is nearly full": {
    alerts: ["ArborDiskSpace"],
    async run(recording, defer) {
      const data = tempDir();
      // In name spaces of its own no other process sees the file system, and it goes away with this one.
      const user = process.getuid?.() === 0 ? [] : ["--map-root-user"];
      const mount = 'mount -t tmpfs -o size=4g arbor "$0" && exec "$@"';
      const wrapper = ["unshare", "--mount", ...user, "sh", "-c", mount, data];
      const service = await startProcess(defer, { data, wrapper });
      await recording.scrape(service.metrics, WELL);
      recording.beginOutage();
      // The files of the process are seen through its own root, with its file systems.
      execFileSync("fallocate", ["-l", "3G", `/proc/${service.pid}/root${data}/ballast`]);
      await recording.scrape(service.metrics, 2);
      recording.hold(6);
    },
  },
};
