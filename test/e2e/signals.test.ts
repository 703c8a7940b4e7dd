// Signals and the files of the certificate, on processes of their own: what SIGHUP reads again, what a stop waits for, and
// what a second signal cuts.
import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdirSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { connect as connectTls, type TLSSocket } from "node:tls";
import { spawn } from "../support/child-process.js";
import { environmentWithoutSettings, PROJECT, scriptArguments } from "../support/project.js";
import { tempDir } from "../support/temp-dir.js";
import { copyTlsFile, TLS_FILES } from "../support/tls-files.js";
import { type Service, startService } from "./process.js";

const FIRST = "localhost";
const SECOND = "other.test";

const running: Service[] = [];
const sockets: Socket[] = [];
after(async () => {
  for (const socket of sockets) socket.destroy();
  for (const service of running) if (service.alive()) service.signal("SIGKILL");
  await Promise.all(running.map(({ ended }) => ended));
});

async function start(...args: readonly string[]): Promise<Service> {
  const service = await startService(tempDir(), ...args);
  running.push(service);
  return service;
}

function copyPair(directory: string, prefix: "" | "other-"): void {
  for (const name of ["cert.pem", "key.pem"]) copyTlsFile(prefix + name, join(directory, name));
}

// As Kubernetes mounts a secret: the files are links into a directory that is itself a link, which is swapped.
function mountSecret(): { readonly directory: string; swap(prefix: "" | "other-"): void } {
  const directory = tempDir();
  let version = 0;
  const swap = (prefix: "" | "other-") => {
    const name = `..version-${++version}`;
    mkdirSync(join(directory, name));
    copyPair(join(directory, name), prefix);
    symlinkSync(name, join(directory, "..data_tmp"));
    renameSync(join(directory, "..data_tmp"), join(directory, "..data"));
    rmSync(join(directory, `..version-${version - 1}`), { recursive: true, force: true });
  };
  swap("");
  for (const name of ["cert.pem", "key.pem"]) symlinkSync(join("..data", name), join(directory, name));
  return { directory, swap };
}

async function openTls({ url }: Service): Promise<TLSSocket> {
  const socket = connectTls({ port: Number(new URL(url).port), host: "127.0.0.1", rejectUnauthorized: false });
  sockets.push(socket);
  socket.on("error", () => {});
  await once(socket, "secureConnect");
  return socket;
}

async function subjectOf(service: Service): Promise<string> {
  const socket = await openTls(service);
  const { CN } = socket.getPeerCertificate().subject;
  socket.destroy();
  return String(CN);
}

async function isHealthy(socket: Socket): Promise<boolean> {
  socket.write("GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n");
  const [chunk] = (await once(socket, "data")) as [Buffer];
  return chunk.toString().startsWith("HTTP/1.1 200 ");
}

const serveTls = (directory: string) =>
  start("--tls-cert", join(directory, "cert.pem"), "--tls-key", join(directory, "key.pem"));

const REPLACED = "the TLS certificate was replaced";
const KEPT = "the TLS certificate cannot be replaced: the one before stays in use";

describe("the certificate", () => {
  test("is read again after its files are renamed over; open connections stay", async () => {
    const directory = tempDir();
    copyPair(directory, "");
    const service = await serveTls(directory);
    const open = await openTls(service);
    assert.equal(await subjectOf(service), FIRST);
    for (const name of ["key.pem", "cert.pem"]) {
      copyTlsFile(`other-${name}`, join(directory, "new"));
      renameSync(join(directory, "new"), join(directory, name));
    }
    assert.match(String((await service.waitForLog(REPLACED)).subject), /other\.test/);
    assert.equal(await subjectOf(service), SECOND);
    assert.ok(await isHealthy(open), "an open connection was lost");
    assert.equal((await service.stop()).code, 0);
  });

  test("is read again after the directory of a mounted secret is swapped", async () => {
    const secret = mountSecret();
    const service = await serveTls(secret.directory);
    secret.swap("other-");
    await service.waitForLog(REPLACED);
    assert.equal(await subjectOf(service), SECOND);
    secret.swap("");
    await service.waitForLog(REPLACED, 1);
    assert.equal(await subjectOf(service), FIRST);
  });

  test("stays when its files cannot be used, which is logged, and is replaced when they can again", async () => {
    const directory = tempDir();
    copyPair(directory, "");
    const service = await serveTls(directory);
    // The control: files that have not changed are no reason to replace anything.
    service.signal("SIGHUP");
    await service.waitForLog("the TLS certificate has not changed");
    const faults: readonly (() => void)[] = [
      () => copyTlsFile("other-key.pem", join(directory, "key.pem")),
      () => writeFileSync(join(directory, "cert.pem"), "no certificate"),
      () => rmSync(join(directory, "cert.pem")),
    ];
    for (const [i, fault] of faults.entries()) {
      fault();
      service.signal("SIGHUP");
      const line = await service.waitForLog(KEPT, i);
      assert.equal(line.level, "error");
      assert.doesNotMatch(JSON.stringify(line), /PRIVATE KEY|no certificate/);
      assert.equal(await subjectOf(service), FIRST);
    }
    copyPair(directory, "other-");
    service.signal("SIGHUP");
    await service.waitForLog(REPLACED);
    assert.equal(await subjectOf(service), SECOND);
    // Without a signal it would have been found as well.
    assert.ok(service.alive());
  });
});

/** A request whose body has not ended, so that its call goes on. */
async function openCall({ url }: Service): Promise<Socket> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  sockets.push(socket);
  socket.on("error", () => {});
  socket.write(
    "POST /sts/exchange HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{",
  );
  await once(socket, "connect");
  await delay(200);
  return socket;
}

/** A service that starts, from the moment when it listens for signals; `isReady` says whether it listens for calls. */
async function spawnStarting() {
  const script = [...scriptArguments("src/main.ts"), "serve", "--data", tempDir(), "--listen", "127.0.0.1:0"];
  const env = environmentWithoutSettings();
  const child = spawn(process.execPath, script, { cwd: PROJECT, env, stdio: ["ignore", "pipe", "ignore"] });
  let output = "";
  child.stdout.on("data", (chunk) => {
    output += chunk;
  });
  const ended = once(child, "exit");
  const deadlineMs = performance.now() + 10_000;
  while (!listensForSighup(child.pid)) {
    assert.ok(child.exitCode === null && performance.now() < deadlineMs, "the process does not listen for SIGHUP");
    await delay(1);
  }
  return { child, ended, isReady: () => output.includes("arbor listening on") };
}

// Node itself does not listen for SIGHUP, whose bit is the lowest.
function listensForSighup(pid: number | undefined): boolean {
  const [, caught = "0"] = /^SigCgt:\s+([0-9a-f]+)$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8")) ?? [];
  return (BigInt(`0x${caught}`) & 1n) === 1n;
}

describe("signals while the service starts", { skip: process.platform !== "linux" }, () => {
  test("SIGHUP does not end it", async () => {
    const { child, ended, isReady } = await spawnStarting();
    assert.equal(isReady(), false);
    for (let i = 0; !isReady() && child.exitCode === null && i < 2_000; i++) {
      child.kill("SIGHUP");
      await delay(10);
    }
    assert.ok(isReady(), `it ended: ${child.signalCode ?? child.exitCode}`);
    child.kill("SIGTERM");
    assert.deepEqual(await ended, [0, null]);
  });

  for (const signal of ["SIGTERM", "SIGINT"] as const) {
    test(`${signal} ends it with exit code 0`, async () => {
      const { child, ended, isReady } = await spawnStarting();
      child.kill(signal);
      assert.deepEqual([await ended, isReady()], [[0, null], false]);
    });
  }
});

describe("signals", () => {
  test("SIGHUP does not end a service without TLS", async () => {
    const service = await start();
    service.signal("SIGHUP");
    await service.waitForLog("the master key file has not changed");
    service.signal("SIGHUP");
    await service.waitForLog("the master key file has not changed", 1);
    assert.equal((await fetch(`${service.url}/healthz`)).status, 200);
    assert.equal((await service.stop()).code, 0);
  });

  test("a stop waits for calls in flight, whatever SIGHUPs come, and says what it waits for", async () => {
    const service = await start();
    const call = await openCall(service);
    service.signal("SIGTERM");
    const line = await service.waitForLog('"stopping"');
    assert.deepEqual([line.calls, line.connections, line.drainS], [1, 1, 30]);
    service.signal("SIGHUP");
    service.signal("SIGHUP");
    await delay(300);
    assert.ok(service.alive());
    const response = once(call, "data");
    call.write("}");
    assert.match(String(((await response) as [Buffer])[0]), /^HTTP\/1\.1 4\d\d /);
    assert.deepEqual(await service.ended, { code: 0, signal: null });
  });

  for (const [first, second] of [
    ["SIGTERM", "SIGTERM"],
    ["SIGTERM", "SIGINT"],
  ] as const) {
    test(`${second} after ${first} cuts what is open and says how much`, async () => {
      const service = await start();
      await openCall(service);
      await openCall(service);
      service.signal(first);
      await service.waitForLog('"stopping"');
      service.signal(second);
      assert.deepEqual(await service.ended, { code: 1, signal: null });
      const line = await service.waitForLog("a second signal");
      assert.deepEqual([line.calls, line.connections, line.signal], [2, 2, second]);
    });
  }

  test("after SIGTERM everything is served for the drain delay, and SIGINT does not wait for it", async () => {
    const service = await start("--drain-delay", "2s");
    const startMs = performance.now();
    service.signal("SIGTERM");
    const line = await service.waitForLog('"stopping"');
    assert.deepEqual([line.delayS, line.drainS], [2, 30]);
    const ready = await fetch(`${service.url}/readyz`);
    assert.deepEqual([ready.status, await ready.text()], [503, '{"status":"draining"}']);
    assert.equal((await fetch(`${service.url}/version`)).status, 200);
    assert.deepEqual(await service.ended, { code: 0, signal: null });
    assert.ok(performance.now() - startMs >= 2_000);

    const other = await start("--drain-delay", "30s", "--drain-time", "9s");
    const otherMs = performance.now();
    other.signal("SIGINT");
    assert.equal((await other.waitForLog('"stopping"')).delayS, 0);
    assert.deepEqual(await other.ended, { code: 0, signal: null });
    assert.ok(performance.now() - otherMs < 20_000);
  });

  test("a second signal cuts the drain delay short", async () => {
    const service = await start("--drain-delay", "30s", "--drain-time", "9s");
    service.signal("SIGTERM");
    await service.waitForLog('"stopping"');
    assert.equal((await fetch(`${service.url}/version`)).status, 200);
    service.signal("SIGTERM");
    assert.deepEqual(await service.ended, { code: 1, signal: null });
  });

  test("the drain time is a setting", async () => {
    const service = await start("--drain-time", "1s");
    const call = await openCall(service);
    const cut = once(call, "close");
    service.signal("SIGTERM");
    await cut;
    const line = await service.waitForLog("the drain time is over");
    assert.deepEqual([line.calls, line.connections], [1, 1]);
    assert.deepEqual(await service.ended, { code: 0, signal: null });
  });
});

test("the certificates of these tests differ", () => {
  const [one, other] = ["cert.pem", "other-cert.pem"].map((name) => readFileSync(new URL(name, TLS_FILES), "utf8"));
  assert.notEqual(one, other);
});

test("control: SIGHUP ends a process that does not listen for it", async () => {
  const child = spawn(process.execPath, ["-e", "setTimeout(() => {}, 60_000); console.log(1)"]);
  await once(child.stdout, "data");
  child.kill("SIGHUP");
  assert.deepEqual(await once(child, "exit"), [null, "SIGHUP"]);
});
