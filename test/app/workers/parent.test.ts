// The parent of workers, with limits that no setting has: whom it serves first, and how long it waits for a worker.
import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { createInterface } from "node:readline";
import { after, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { spawn } from "../../support/child-process.js";
import { type ProbeResult, probe } from "../../support/probe.js";
import { environmentWithoutSettings, PROJECT, scriptArguments } from "../../support/project.js";
import { tempDir } from "../../support/temp-dir.js";
import { waitUntil } from "../../support/wait-until.js";
import { workersOf } from "../../support/workers.js";
import type { ParentProcessOptions } from "./parent-process.js";

const skip = process.platform !== "linux";
const START_MS = 60_000;

interface Parent {
  readonly pid: number;
  readonly url: string;
  readonly log: readonly string[];
  readonly ended: Promise<unknown>;
  /** Kills it, and so its workers. */
  stop(): Promise<unknown>;
}

const ends: (() => Promise<unknown>)[] = [];
after(() => Promise.all(ends.map((end) => end())));

async function startParent(options: Omit<ParentProcessOptions, "flags">, flags = {}): Promise<Parent> {
  const all = { data: tempDir(), listen: "127.0.0.1:0", metricsListen: "off", accessLog: "off", ...flags };
  const args = [...scriptArguments("test/app/workers/parent-process.ts"), JSON.stringify({ flags: all, ...options })];
  const child = spawn(process.execPath, args, {
    cwd: PROJECT,
    env: environmentWithoutSettings(),
    stdio: ["ignore", "pipe", "pipe"],
  });
  const { stdout, stderr, pid } = child;
  if (stdout === null || stderr === null || pid === undefined) throw new Error("the parent did not start");
  const ended = once(child, "close");
  const stop = () => {
    child.kill("SIGKILL");
    return ended;
  };
  ends.push(stop);
  const log: string[] = [];
  createInterface({ input: stderr }).on("line", (line) => log.push(line));
  const first = await Promise.race([once(createInterface({ input: stdout }), "line"), ended]);
  const url = String(first[0]).replace("arbor listening on ", "");
  assert.match(url, /^http:/, log.join("\n"));
  return { pid, url, log, ended, stop };
}

/** Keeps so many short connections of an address on their way, each replaced as soon as it has ended. */
function flood(url: string, from: string, width: number): { readonly sent: () => number; stop(): void } {
  const { hostname, port } = new URL(url);
  const open = new Set<Socket>();
  let isOver = false;
  let sent = 0;
  const begin = () => {
    if (isOver) return;
    sent++;
    const socket = connect({ host: hostname, port: Number(port), localAddress: from });
    open.add(socket);
    socket.on("connect", () => socket.write("GET /version HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"));
    socket.on("error", () => {});
    socket.resume();
    socket.on("close", () => {
      open.delete(socket);
      setImmediate(begin);
    });
  };
  for (let i = 0; i < width; i++) begin();
  return {
    sent: () => sent,
    stop() {
      isOver = true;
      for (const socket of open) socket.destroy();
    },
  };
}

// More than may wait, so that the queue is full whatever the machine can do.
const WIDTH = 400;
const MAX_WAITING = 50;
const HONEST_CALLS = 40;

async function callThroughFlood(isInOrder: boolean): Promise<{ results: ProbeResult[]; flooded: number }> {
  const { url, log, stop: stopParent } = await startParent({ maxWaiting: MAX_WAITING, isInOrder });
  const { sent, stop } = flood(url, "127.0.0.2", WIDTH);
  try {
    await waitUntil(
      () => log.some((line) => line.includes("connections were closed that no worker has taken")),
      60_000,
    );
    const results: ProbeResult[] = [];
    for (let i = 0; i < HONEST_CALLS; i++) results.push(await probe(url, { path: "/version", from: "127.0.0.1" }));
    return { results, flooded: sent() };
  } finally {
    stop();
    await stopParent();
  }
}

const countAnswered = (results: readonly ProbeResult[]) => results.filter((result) => result === 200).length;

describe("an address that floods the service with short connections", { skip }, () => {
  test("delays its own only: every connection of another address is served", async (t) => {
    const { results, flooded } = await callThroughFlood(false);
    t.diagnostic(`${countAnswered(results)} of ${HONEST_CALLS} answered beside ${flooded} of the flood`);
    assert.ok(flooded > 1_000, `${flooded}`);
    assert.equal(countAnswered(results), HONEST_CALLS, results.join());
  });

  test("the control: in the order of arrival it takes the place of others", async (t) => {
    const { results, flooded } = await callThroughFlood(true);
    t.diagnostic(`${countAnswered(results)} of ${HONEST_CALLS} answered beside ${flooded} of the flood`);
    assert.ok(countAnswered(results) < HONEST_CALLS * 0.8, results.join());
  });
});

describe("a worker that does not get ready", { skip }, () => {
  test("is killed after a limit, and the service ends where none does", async () => {
    const parent = await startParent({ startLimits: { firstS: 60, nextS: 2 } });
    const first = workersOf(parent.pid);
    let isOver = false;
    // Those that replace the first two never run long enough to get ready.
    const stopping = (async () => {
      while (!isOver) {
        for (const pid of workersOf(parent.pid)) {
          try {
            if (!first.includes(pid)) process.kill(pid, "SIGSTOP");
          } catch {
            // It has ended meanwhile.
          }
        }
        await sleep(10);
      }
    })();
    for (const pid of first) process.kill(pid, "SIGKILL");
    const results: ProbeResult[] = [];
    while ((await Promise.race([parent.ended, sleep(100, undefined)])) === undefined) {
      results.push(await probe(parent.url));
    }
    isOver = true;
    await stopping;
    assert.deepEqual(await parent.ended, [1, null]);
    assert.ok(!results.includes("hangs"), results.join());
    const line = parent.log.find((text) => text.includes("no worker can start: the service ends"));
    assert.match(line ?? "", /it was not ready after 2 s/, parent.log.join("\n"));
  });

  test("while another one serves is tried again and again", async () => {
    const parent = await startParent({ startLimits: { firstS: 60, nextS: 2 } });
    const [kept, killed = 0] = workersOf(parent.pid);
    process.kill(killed, "SIGKILL");
    const next = await waitUntil(() => workersOf(parent.pid).find((pid) => pid !== kept && pid !== killed), START_MS);
    process.kill(next, "SIGSTOP");
    await waitUntil(() => parent.log.some((line) => line.includes("does not get ready and is killed")), START_MS);
    assert.equal(await probe(parent.url), 200);
    await waitUntil(() => workersOf(parent.pid).some((pid) => ![kept, killed, next].includes(pid)), START_MS);
    await parent.stop();
  });
});
