// `arbor serve --workers`: several processes that are one service, on processes of their own.
import assert from "node:assert/strict";
import { once } from "node:events";
import { closeSync, createReadStream, openSync } from "node:fs";
import { Agent, type IncomingMessage, request } from "node:http";
import { connect as connectHttp2 } from "node:http2";
import { connect, type Socket } from "node:net";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import { after, before, describe, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { connect as connectTls } from "node:tls";
import { holdServeLock, shareParentLock } from "../../src/store/sqlite/data-directory.js";
import { grpcApi } from "../faults/api.js";
import { execFileSync, spawn } from "../support/child-process.js";
import { freePort } from "../support/free-port.js";
import { scrape } from "../support/metrics.js";
import { environmentWithoutSettings, PROJECT, scriptArguments } from "../support/project.js";
import { tempDir } from "../support/temp-dir.js";
import { copyTlsFile } from "../support/tls-files.js";
import { waitUntil } from "../support/wait-until.js";
import { workersOf } from "../support/workers.js";
import { arbor, type Organisation, type Service, startHost, startService } from "./process.js";

/** How long a worker may take to start, on a busy machine. */
const START_MS = 60_000;

const running: Service[] = [];
const sockets: Socket[] = [];
const host = startHost();
after(async () => {
  for (const socket of sockets) socket.destroy();
  for (const service of running) if (service.alive()) service.signal("SIGKILL");
  await Promise.all(running.map(({ ended }) => ended));
  host.close();
});

async function start(data: string, ...args: readonly string[]): Promise<Service> {
  const service = await startService(data, "--workers", "2", ...args);
  running.push(service);
  return service;
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

/** Opens a connection of its own, which is kept, and asks for a path. */
async function ask(service: Service, path = "/version", token?: string): Promise<{ socket: Socket; status: number }> {
  const { hostname, port } = new URL(service.url);
  const socket = connect(Number(port), hostname);
  sockets.push(socket);
  socket.on("error", () => {});
  const authorization = token === undefined ? "" : `Authorization: Bearer ${token}\r\n`;
  socket.write(`GET ${path} HTTP/1.1\r\nHost: ${hostname}\r\n${authorization}\r\n`);
  const [chunk] = (await Promise.race([once(socket, "data"), once(socket, "close").then(() => [""])])) as [Buffer];
  return { socket, status: Number(String(chunk).slice(9, 12)) };
}

describe("two workers", { skip: process.platform !== "linux" }, () => {
  let data: string;
  let made: Organisation;
  let service: Service;
  let metricsUrl: string;
  before(async () => {
    data = tempDir();
    const port = await freePort();
    const listen = `127.0.0.1:${await freePort()}`;
    const bootstrapped = await host.run([
      "bootstrap",
      "--org",
      "workers.example",
      "--data",
      data,
      "--json",
      "--listen",
      listen,
    ]);
    made = JSON.parse(bootstrapped.stdout) as Organisation;
    metricsUrl = `http://127.0.0.1:${port}/metrics`;
    service = await start(
      data,
      "--listen",
      listen,
      "--metrics-listen",
      `127.0.0.1:${port}`,
      "--connections-per-address",
      "20",
    );
  });

  test("serve HTTP/1.1, HTTP/2 and gRPC, and answer for each other", async () => {
    assert.equal(workersOf(service.pid).length, 2);
    const path = `/iam/v2beta1/groups/${made.group}`;
    const answers = await Promise.all(Array.from({ length: 6 }, () => ask(service, path, made.token)));
    assert.deepEqual(
      answers.map(({ status }) => status),
      Array(6).fill(200),
    );
    for (const { socket } of answers) socket.destroy();
    for (let i = 0; i < 4; i++) {
      const session = connectHttp2(service.url);
      const stream = session.request({ ":path": path, authorization: `Bearer ${made.token}` });
      const [headers] = (await once(stream, "response")) as [Record<string, unknown>];
      assert.equal(headers[":status"], 200);
      session.destroy();
      const api = grpcApi(service.url, made.token);
      assert.equal(await api.read("groups", made.group), "");
      api.close();
    }
  });

  test("answer a scrape together: counts are summed, gauges told apart", async () => {
    const before = (await scrape(metricsUrl)).sum("arbor_requests_total", { method: "version" }) ?? 0;
    // Those of the test before have ended, also in the counts of the parent.
    await waitUntil(async () => (await scrape(metricsUrl)).sum("arbor_connections") === 0);
    await delay(100);
    // One after the other: of those that come at once a worker that is quicker gets more.
    const answers: Awaited<ReturnType<typeof ask>>[] = [];
    for (let i = 0; i < 8; i++) answers.push(await ask(service));
    const metrics = await scrape(metricsUrl);
    assert.equal(metrics.sum("arbor_requests_total", { method: "version" }), before + 8);
    const series = metrics.samples.filter(({ name }) => name === "arbor_requests_total");
    assert.ok(series.every(({ labels }) => labels.worker === undefined));
    assert.equal(metrics.sum("arbor_workers"), 2);
    // Whoever has fewest gets the next.
    for (const worker of ["1", "2"]) assert.equal(metrics.sum("arbor_connections", { worker }), 4);
    for (const { socket } of answers) socket.destroy();
    await waitUntil(async () => (await scrape(metricsUrl)).sum("arbor_connections") === 0);
  });

  test("hold the limit of an address together, and answer health checks beyond it", async () => {
    const kept = (await scrape(metricsUrl)).sum("arbor_connections") ?? 0;
    const answers: { socket: Socket; status: number }[] = [];
    for (let i = kept; i < 20; i++) answers.push(await ask(service));
    assert.ok(answers.length > 11 && answers.every(({ status }) => status === 200));
    // One more than the limit. Each worker alone has ten, and would accept it.
    const beyond = await ask(service);
    assert.notEqual(beyond.status, 200);
    assert.equal((await ask(service, "/healthz")).status, 200);
    for (const { socket } of [...answers, beyond]) socket.destroy();
    await waitUntil(async () => (await ask(service)).status === 200);
  });

  test("count failed attempts together", async () => {
    const agents = Array.from({ length: 4 }, () => new Agent({ keepAlive: true, maxSockets: 1 }));
    const fail = async (agent: Agent | undefined) => {
      const url = `${service.url}/token?service=arbor`;
      const call = request(url, { agent, auth: "mallory:wrong" }).end();
      const [response] = (await once(call, "response")) as [IncomingMessage];
      response.resume();
      await once(response, "end");
      assert.equal(response.statusCode, 401);
    };
    // Each worker answers some of them, and neither as many as the limit of 20.
    for (let i = 0; i < 24; i++) await fail(agents[i % 4]);
    const startMs = performance.now();
    await Promise.all(Array.from({ length: 6 }, () => fail(new Agent())));
    // A worker serves two of a caller that fails at once, and the next after 100 ms. One of the two has three of the six.
    const tookMs = performance.now() - startMs;
    for (const agent of agents) agent.destroy();
    assert.ok(tookMs > 95, `six more took ${tookMs} ms`);
    for (const worker of [1, 2]) await service.waitForLog(`"worker":${worker},"msg":"request"`);
  });

  test("a worker that is killed is replaced at once, and what it acknowledged is there", async () => {
    const api = grpcApi(service.url, made.token);
    const uid = await api.create("groups", made.group, "acknowledged");
    const [first = 0] = workersOf(service.pid);
    process.kill(first, "SIGKILL");
    const { pauseMs } = await service.waitForLog("a worker has ended and is replaced");
    assert.equal(pauseMs, 0);
    await waitUntil(async () => (await scrape(metricsUrl)).sum("arbor_workers") === 2, START_MS);
    assert.equal((await scrape(metricsUrl)).sum("arbor_worker_exits_total"), 1);
    assert.equal((await ask(service, `/iam/v2beta1/groups/${uid}`, made.token)).status, 200);
    api.close();
  });

  test("a worker that hangs is killed and replaced, and others serve until then", async () => {
    const [hung = 0] = workersOf(service.pid);
    const stoppedMs = performance.now();
    process.kill(hung, "SIGSTOP");
    // At most one connection waits for it.
    const statuses = await Promise.all(
      Array.from({ length: 4 }, () => Promise.race([ask(service).then(({ status }) => status), delay(3_000, 0)])),
    );
    assert.ok(statuses.filter((status) => status === 200).length >= 3, statuses.join());
    await service.waitForLog("a worker hangs and is killed");
    await waitUntil(() => !isAlive(hung), START_MS);
    const killedMs = performance.now() - stoppedMs;
    assert.ok(killedMs > 8_000, `it was killed after ${killedMs} ms`);
    await waitUntil(async () => (await scrape(metricsUrl)).sum("arbor_workers") === 2, START_MS);
  });

  test("workers that are killed again and again are replaced without pauses", async () => {
    const exits = (await scrape(metricsUrl)).sum("arbor_worker_exits_total") ?? 0;
    for (let i = 0; i < 4; i++) {
      process.kill(workersOf(service.pid)[0] ?? 0, "SIGKILL");
      await waitUntil(async () => (await scrape(metricsUrl)).sum("arbor_worker_exits_total") === exits + i + 1);
      await waitUntil(async () => (await scrape(metricsUrl)).sum("arbor_workers") === 2, START_MS);
      const { pauseMs } = await service.waitForLog("a worker has ended and is replaced", exits + i);
      assert.equal(pauseMs, 0);
    }
  });

  test("keep another server out, and commands that need the directory alone", async () => {
    const second = await arbor("serve", "--data", data, "--listen", "127.0.0.1:0", "--workers", "2");
    assert.equal(second.code, 1);
    assert.match(second.stderr, /another process holds .*serve\.lock/);
    const single = await arbor("serve", "--data", data, "--listen", "127.0.0.1:0");
    assert.match(single.stderr, /another process holds .*serve\.lock/);
    const describe = () => "in use";
    assert.throws(() => holdServeLock(data, "SERVER_RUNS", describe), /in use/);
    // As long as a worker has the lock, also without its parent.
    const alone = tempDir();
    const release = shareParentLock(join(alone, "serve.lock"));
    const late = await arbor("serve", "--data", alone, "--listen", "127.0.0.1:0", "--workers", "2");
    assert.match(late.stderr, /another process holds/);
    release();
    holdServeLock(alone, "SERVER_RUNS", describe)();
  });

  test("end when their parent is killed, and the directory can be served again", async () => {
    const workers = workersOf(service.pid);
    assert.equal(workers.length, 2);
    service.signal("SIGKILL");
    await service.ended;
    await waitUntil(() => !workers.some(isAlive));
    const next = await start(data);
    assert.equal((await fetch(`${next.url}/healthz`)).status, 200);
    const { code, stdout, stderr } = await next.stop();
    assert.equal(code, 0, stderr);
    assert.match(stdout, /^arbor listening on \S+$/);
    assert.equal(stderr.match(/"msg":"started"/g)?.length, 1);
    assert.equal(stderr.match(/"msg":"a worker has stopped"/g)?.length, 2);
  });
});

test("SIGHUP gives all workers the new certificate, and SIGTERM lets calls end", {
  skip: process.platform !== "linux",
}, async () => {
  const directory = tempDir();
  const copy = (prefix: string) => {
    for (const name of ["cert.pem", "key.pem"]) copyTlsFile(prefix + name, join(directory, name));
  };
  copy("");
  const flags = ["--tls-cert", join(directory, "cert.pem"), "--tls-key", join(directory, "key.pem")];
  const service = await start(tempDir(), ...flags);
  const open = async () => {
    const socket = connectTls({
      port: Number(new URL(service.url).port),
      host: "127.0.0.1",
      rejectUnauthorized: false,
    });
    sockets.push(socket);
    await once(socket, "secureConnect");
    return socket;
  };
  // Kept open, so that both workers have some.
  const subjects = async () => {
    const opened = [await open(), await open(), await open(), await open()];
    return opened.map((socket) => String(socket.getPeerCertificate().subject.CN));
  };
  assert.deepEqual(await subjects(), Array(4).fill("localhost"));
  copy("other-");
  service.signal("SIGHUP");
  await service.waitForLog("the TLS certificate was replaced", 1);
  assert.deepEqual(await subjects(), Array(4).fill("other.test"));
  const call = await open();
  call.write("POST /sts/exchange HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{");
  await delay(200);
  service.signal("SIGTERM");
  await service.waitForLog('"stopping"');
  await delay(300);
  assert.ok(service.alive());
  const response = once(call, "data");
  call.write("}");
  assert.match(String(((await response) as [Buffer])[0]), /^HTTP\/1\.1 4\d\d /);
  assert.deepEqual(await service.ended, { code: 0, signal: null });
});

test("write whole lines of the log, with the worker, to a pipe whose reader is slow", {
  skip: process.platform !== "linux",
}, async () => {
  const pipe = join(tempDir(), "log");
  execFileSync("mkfifo", [pipe]);
  // Opened for both, so that nobody waits for the other end.
  const end = openSync(pipe, "r+");
  const args = ["serve", "--data", tempDir(), "--listen", "127.0.0.1:0", "--workers", "2", "--metrics-listen", "off"];
  const child = spawn(process.execPath, [...scriptArguments("src/main.ts"), ...args], {
    cwd: PROJECT,
    env: environmentWithoutSettings(),
    stdio: ["ignore", "pipe", end],
  });
  const ended = once(child, "exit");
  try {
    const [line] = (await once(createInterface({ input: child.stdout as Readable }), "line")) as [string];
    const url = line.replace("arbor listening on ", "");
    const agents = Array.from({ length: 8 }, () => new Agent({ keepAlive: true, maxSockets: 1 }));
    const path = `/iam/v2beta1/groups/${"a".repeat(300)}`;
    // Several times what the pipe holds.
    for (let i = 0; i < 80; i++) {
      await Promise.all(
        agents.map(async (agent) => {
          const [response] = (await once(request(`${url}${path}`, { agent }).end(), "response")) as [IncomingMessage];
          response.resume();
          await once(response, "end");
        }),
      );
    }
    for (const agent of agents) agent.destroy();
    // The last lines wait for up to a second.
    await delay(1_500);
    const lines: string[] = [];
    const log = createReadStream(pipe);
    createInterface({ input: log }).on("line", (line) => lines.push(line));
    await waitUntil(() => lines.filter((line) => line.includes('"msg":"request"')).length >= 640);
    log.destroy();
    const requests = lines.map((line) => JSON.parse(line)).filter(({ msg }) => msg === "request");
    assert.equal(requests.length, 640);
    assert.deepEqual(new Set(requests.map(({ worker }) => worker)), new Set([1, 2]));
  } finally {
    child.kill("SIGKILL");
    await ended;
    closeSync(end);
  }
});

test("a start that fails says why once, with the exit code of a single process", async () => {
  const data = tempDir();
  const { code, stdout, stderr } = await arbor(
    "serve",
    "--data",
    data,
    "--no-create",
    "--listen",
    "127.0.0.1:0",
    "--workers",
    "2",
  );
  assert.deepEqual([code, stdout], [6, ""]);
  assert.match(stderr, /there is no installation in/);
});
