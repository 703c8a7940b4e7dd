// Workers of `arbor serve --workers` that end or hang, on processes of their own: what becomes of the connections on their
// way to them, of the counts that they have told, and of the service when none can start any more.
import assert from "node:assert/strict";
import {
  closeSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { execFileSync } from "../support/child-process.js";
import { freePort } from "../support/free-port.js";
import { scrape } from "../support/metrics.js";
import { type ProbeResult, probe } from "../support/probe.js";
import { tempDir } from "../support/temp-dir.js";
import { copyTlsFile } from "../support/tls-files.js";
import { waitUntil } from "../support/wait-until.js";
import { workersOf } from "../support/workers.js";
import { type Service, startService } from "./process.js";

const IS_LINUX = process.platform === "linux";
const START_MS = 60_000;
/** How long the service may take until it ends: five starts of each worker on a busy machine. */
const END_MS = 120_000;

const running: Service[] = [];
after(async () => {
  for (const service of running) if (service.alive()) service.signal("SIGKILL");
  await Promise.all(running.map(({ ended }) => ended));
});

interface StartOptions {
  readonly data?: string;
  readonly args?: readonly string[];
}

interface Started {
  readonly service: Service;
  readonly metricsUrl: string;
  readonly data: string;
}

async function start({ data = tempDir(), args = [] }: StartOptions = {}): Promise<Started> {
  const metrics = `127.0.0.1:${await freePort()}`;
  const service = await startService(data, "--workers", "2", "--metrics-listen", metrics, ...args);
  running.push(service);
  return { service, metricsUrl: `http://${metrics}/metrics`, data };
}

const signalAll = (pids: readonly number[], signal: NodeJS.Signals) => {
  for (const pid of pids) {
    try {
      process.kill(pid, signal);
    } catch {
      // It has ended meanwhile.
    }
  }
};

const untilServing = ({ metricsUrl }: Started) =>
  waitUntil(async () => (await scrape(metricsUrl)).sum("arbor_workers") === 2, START_MS);

/** Writes until there is no room. */
function fillDisk(file: string): void {
  const fd = openSync(file, "w");
  try {
    for (const size of [64 * 1024, 512]) {
      try {
        for (;;) writeSync(fd, Buffer.alloc(size));
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== "ENOSPC") throw error;
      }
    }
  } finally {
    closeSync(fd);
  }
}

/** Counts the descriptors of the parent, without those of scrapes, which are kept. */
function countDescriptors({ service, metricsUrl }: Started): number {
  const port = Number(new URL(metricsUrl).port).toString(16).toUpperCase().padStart(4, "0");
  const rows = readFileSync("/proc/net/tcp", "latin1")
    .split("\n")
    .map((line) => line.trim().split(/\s+/));
  const scrapes = new Set(rows.filter(([, local]) => local?.endsWith(`:${port}`)).map((row) => `socket:[${row[9]}]`));
  const directory = `/proc/${service.pid}/fd`;
  return readdirSync(directory).filter((fd) => !scrapes.has(readLink(join(directory, fd)))).length;
}

function readLink(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    // It was closed meanwhile.
    return "";
  }
}

/** Sends health checks, one after the other, until the service has ended. */
async function probeUntilEnd({ service }: Started): Promise<ProbeResult[]> {
  const results: ProbeResult[] = [];
  const endMs = performance.now() + END_MS;
  while (service.alive() && performance.now() < endMs) {
    results.push(await probe(service.url));
    await sleep(50);
  }
  return results;
}

/** Waits for the end of a service of which no worker can start. */
async function expectEnd(started: Started, code: number, cause: RegExp): Promise<void> {
  const { service } = started;
  const results = await probeUntilEnd(started);
  assert.ok(!service.alive(), "the service goes on");
  assert.deepEqual(await service.ended, { code, signal: null });
  const line = await service.waitForLog("no worker can start: the service ends");
  assert.equal(line.level, "fatal");
  assert.match(String(line.cause), cause);
  // Some were answered before, and none waited for a worker that never came.
  assert.ok(!results.includes("hangs"), results.join());
  assert.equal(await probe(service.url), "refused");
}

describe("workers of which none can start any more", { skip: !IS_LINUX, concurrency: 2 }, () => {
  test("because the master key is missing: the service ends with their exit code", async () => {
    const started = await start();
    renameSync(join(started.data, "master.key"), join(started.data, "lost.key"));
    signalAll(workersOf(started.service.pid), "SIGKILL");
    await expectEnd(started, 6, /master\.key/);
  });

  test("because a file that a setting names became unusable: it ends with that of wrong settings", async () => {
    const directory = tempDir();
    const [cert, key] = [join(directory, "cert.pem"), join(directory, "key.pem")];
    copyTlsFile("cert.pem", cert);
    copyTlsFile("key.pem", key);
    const started = await start({ args: ["--tls-cert", cert, "--tls-key", key] });
    writeFileSync(cert, "no certificate");
    signalAll(workersOf(started.service.pid), "SIGKILL");
    await expectEnd(started, 2, /tls-cert/);
  });

  test("because the disk is full", {
    skip: process.getuid?.() !== 0 && "only root may mount a small disk",
  }, async () => {
    const data = tempDir();
    execFileSync("mount", ["-t", "tmpfs", "-o", "size=12m", "tmpfs", data]);
    try {
      const started = await start({ data });
      const { service } = started;
      fillDisk(join(data, "filler"));
      signalAll(workersOf(service.pid), "SIGKILL");
      await expectEnd(started, 8, /no space left/);
    } finally {
      // Lazily, because a service that did not end still uses it.
      execFileSync("umount", ["--lazy", data]);
    }
  });

  test("because each is killed before it is ready", async () => {
    const started = await start();
    const { service } = started;
    const kill = setInterval(() => service.alive() && signalAll(workersOf(service.pid), "SIGKILL"), 20);
    try {
      await expectEnd(started, 1, /killed by SIGKILL/);
    } finally {
      clearInterval(kill);
    }
  });

  test("because each is killed as soon as it is ready, too", async () => {
    const started = await start();
    const { service, metricsUrl } = started;
    let isOver = false;
    const killing = (async () => {
      while (!isOver && service.alive()) {
        const metrics = await scrape(metricsUrl).catch(() => undefined);
        if ((metrics?.sum("arbor_workers") ?? 0) > 0) signalAll(workersOf(service.pid), "SIGKILL");
        await sleep(20);
      }
    })();
    try {
      await expectEnd(started, 1, /killed by SIGKILL/);
    } finally {
      isOver = true;
      await killing;
    }
  });

  test("but not while one serves, however often the other is killed", async () => {
    const started = await start();
    const { service, metricsUrl } = started;
    const [kept] = workersOf(service.pid);
    for (let i = 0; i < 7; i++) {
      const exits = (await scrape(metricsUrl)).sum("arbor_worker_exits_total") ?? 0;
      const others = () => workersOf(service.pid).filter((pid) => pid !== kept);
      await waitUntil(() => others().length > 0, START_MS);
      signalAll(others(), "SIGKILL");
      await waitUntil(async () => (await scrape(metricsUrl)).sum("arbor_worker_exits_total") === exits + 1, START_MS);
    }
    assert.equal(await probe(service.url), 200);
    assert.deepEqual(workersOf(service.pid).includes(kept ?? 0), true);
    await untilServing(started);
  });
});

describe("a connection on its way to a worker", { skip: !IS_LINUX }, () => {
  test("that hangs is closed when it has waited as long as a call may", async () => {
    const started = await start({ args: ["--max-wait", "1s"] });
    const { service } = started;
    signalAll(workersOf(service.pid), "SIGSTOP");
    const startMs = performance.now();
    // One for each worker, and others that wait for one of them.
    const results = await Promise.all(Array.from({ length: 6 }, () => probe(service.url)));
    const ms = performance.now() - startMs;
    assert.deepEqual(results, Array(6).fill("closed"));
    // Before the workers are killed, which is after 10 s.
    assert.ok(service.alive() && ms < 9_000, `${ms} ms`);
    signalAll(workersOf(service.pid), "SIGCONT");
    await waitUntil(async () => (await probe(service.url)) === 200);
  });

  test("that dies is closed, and no descriptor of it stays in the parent", async () => {
    const started = await start({ args: ["--max-wait", "60s"] });
    const { service } = started;
    await probe(service.url);
    await waitUntil(async () => (await scrape(started.metricsUrl)).sum("arbor_connections") === 0);
    const before = countDescriptors(started);
    for (let round = 0; round < 6; round++) {
      const [stopped = 0] = workersOf(service.pid);
      process.kill(stopped, "SIGSTOP");
      // The worker with the fewest gets the next one, so one of these is on its way to the one that hangs.
      const probes = Array.from({ length: 4 }, () => probe(service.url));
      assert.equal(await Promise.race(probes), 200);
      process.kill(stopped, "SIGKILL");
      const results = await Promise.all(probes);
      assert.deepEqual(
        results.filter((result) => result !== 200),
        ["closed"],
        `round ${round}`,
      );
      await untilServing(started);
    }
    await waitUntil(() => countDescriptors(started) <= before);
  });

  test("ends under load too, while workers are killed again and again", async (t) => {
    const started = await start();
    const { service } = started;
    await probe(service.url);
    await waitUntil(async () => (await scrape(started.metricsUrl)).sum("arbor_connections") === 0);
    const before = countDescriptors(started);
    let isOver = false;
    const results: ProbeResult[] = [];
    const callers = Array.from({ length: 16 }, async () => {
      while (!isOver) results.push(await probe(service.url));
    });
    for (let kill = 0; kill < 12; kill++) {
      const pids = workersOf(service.pid);
      process.kill(pids[kill % pids.length] ?? 0, "SIGKILL");
      await untilServing(started);
    }
    isOver = true;
    await Promise.all(callers);
    const count = (wanted: ProbeResult) => results.filter((result) => result === wanted).length;
    t.diagnostic(`${results.length} calls, ${count(200)} answered, ${count("closed")} closed`);
    assert.equal(count(200) + count("closed"), results.length);
    assert.ok(count(200) > results.length / 2);
    await waitUntil(() => countDescriptors(started) <= before);
  });
});

test("counts never fall, also when a worker is killed while it is asked for them", { skip: !IS_LINUX }, async () => {
  const started = await start({ args: ["--max-wait", "60s"] });
  const { service, metricsUrl } = started;
  const read = async () => {
    const metrics = await scrape(metricsUrl);
    const counters = metrics.samples.filter(({ name }) => metrics.types.get(name) === "counter");
    return { requests: metrics.sum("arbor_requests_total", { method: "version" }) ?? 0, counters };
  };
  for (let i = 0; i < 60; i++) assert.equal(await probe(service.url, { path: "/version" }), 200);
  let last = await read();
  assert.equal(last.requests, 60);
  for (let round = 0; round < 4; round++) {
    const [stopped = 0] = workersOf(service.pid);
    process.kill(stopped, "SIGSTOP");
    const during = read();
    // The parent waits for two seconds for the worker that cannot answer.
    await sleep(300);
    process.kill(stopped, "SIGKILL");
    for (const next of [await during, await read()]) {
      assert.equal(next.requests, 60, `round ${round}`);
      const key = ({ name, labels }: (typeof next.counters)[number]) => `${name} ${JSON.stringify(labels)}`;
      const values = new Map(next.counters.map((sample) => [key(sample), sample.value]));
      const fell = last.counters.filter((sample) => (values.get(key(sample)) ?? 0) < sample.value).map(key);
      assert.deepEqual(fell, [], `round ${round}`);
      last = next;
    }
    await untilServing(started);
  }
});
