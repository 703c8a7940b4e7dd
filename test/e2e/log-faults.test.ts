// A log that cannot be written, because its reader stalls or its file system is full: the service starts, answers and
// stops all the same, and says afterwards how many lines it lost.
import assert from "node:assert/strict";
import type { ChildProcess, StdioOptions } from "node:child_process";
import { once } from "node:events";
import { closeSync, constants, openSync, readFileSync, readSync, rmSync, writeFileSync, writeSync } from "node:fs";
import { join } from "node:path";
import { after, test } from "node:test";
import { execFileSync, spawn } from "../support/child-process.js";
import { freePort } from "../support/free-port.js";
import { scrape } from "../support/metrics.js";
import { environmentWithoutSettings, PROJECT, scriptArguments } from "../support/project.js";
import { sendHttp } from "../support/send-http.js";
import { tempDir } from "../support/temp-dir.js";
import { waitUntil } from "../support/wait-until.js";

/** Access lines of these calls are more than a megabyte and what a pipe holds. */
const CALLS = 3_000;
const LANES = 8;
/** How long a start may take on a busy machine. */
const START_MS = 60_000;
const LONG_PATH = `/${"a".repeat(500)}`;

const running: ChildProcess[] = [];
const cleanups: (() => void)[] = [];
after(async () => {
  for (const child of running) child.kill("SIGKILL");
  await Promise.all(running.map((child) => child.exitCode ?? child.signalCode ?? once(child, "exit")));
  for (const clean of cleanups) clean();
});

/** Something that takes the log and does not write it. */
interface Fault {
  /** Standard error of the service. */
  readonly stderr: "pipe" | number;
  /** Ends the fault, and returns the log that was written, and all of it once the service has ended. */
  readonly recover?: () => () => string;
}

function open(path: string, flags: number): number {
  const fd = openSync(path, flags);
  cleanups.push(() => closeSync(fd));
  return fd;
}

// As of a shell: writes wait until there is room.
function stalledPipe(): Fault {
  const path = join(tempDir(), "log");
  execFileSync("mkfifo", [path]);
  const reader = open(path, constants.O_RDONLY | constants.O_NONBLOCK);
  const stderr = open(path, constants.O_WRONLY);
  const filler = open(path, constants.O_WRONLY | constants.O_NONBLOCK);
  const space = Buffer.alloc(4_096, " ");
  // Full before the first line.
  assert.throws(() => {
    for (;;) writeSync(filler, space);
  }, /EAGAIN/);
  let text = "";
  const read = () => {
    const chunk = Buffer.alloc(65_536);
    try {
      for (let bytes = 1; bytes > 0; ) {
        bytes = readSync(reader, chunk);
        text += chunk.toString("latin1", 0, bytes);
      }
    } catch (error) {
      assert.equal((error as NodeJS.ErrnoException).code, "EAGAIN");
    }
    return text;
  };
  return { stderr, recover: () => read };
}

// Written through a file that can be removed to make room.
function fullFileSystem(): Fault {
  const directory = tempDir();
  execFileSync("mount", ["-t", "tmpfs", "-o", "size=16m", "arbor-test", directory]);
  cleanups.push(() => execFileSync("umount", ["-l", directory]));
  const log = join(directory, "log");
  const stderr = open(log, constants.O_WRONLY | constants.O_CREAT | constants.O_APPEND);
  const filler = join(directory, "filler");
  assert.throws(() => writeFileSync(filler, Buffer.alloc(32 * 1024 * 1024)), /ENOSPC/);
  return {
    stderr,
    recover() {
      rmSync(filler);
      return () => readFileSync(log, "latin1");
    },
  };
}

const isRoot = process.getuid?.() === 0;
const faults: Readonly<Record<string, { readonly begin: () => Fault; readonly skip?: string | false }>> = {
  "a full pipe that nobody reads": { begin: stalledPipe },
  "a socket that nobody reads": { begin: () => ({ stderr: "pipe" }) },
  "a device without room": { begin: () => ({ stderr: open("/dev/full", constants.O_WRONLY) }) },
  "a file system without room": { begin: fullFileSystem, skip: !isRoot && "needs root, for a file system" },
};

/** A service whose output need not be readable. */
async function start(stdout: "ignore" | "pipe" | number, stderr: "pipe" | number, args: readonly string[] = []) {
  const [port, metricsPort] = [await freePort(), await freePort()];
  const serve = [
    ...["serve", "--data", tempDir(), "--listen", `127.0.0.1:${port}`, "--metrics-listen", `127.0.0.1:${metricsPort}`],
    ...args,
  ];
  const stdio: StdioOptions = ["ignore", stdout, stderr];
  const child = spawn(process.execPath, [...scriptArguments("src/main.ts"), ...serve], {
    cwd: PROJECT,
    env: environmentWithoutSettings(),
    stdio,
  });
  running.push(child);
  const url = `http://127.0.0.1:${port}`;
  return {
    child,
    url,
    metricsUrl: `http://127.0.0.1:${metricsPort}/metrics`,
    async isHealthy(): Promise<boolean> {
      assert.deepEqual([child.exitCode, child.signalCode], [null, null], "the service has ended");
      return (await sendHttp(`${url}/readyz`).catch(() => undefined))?.status === 200;
    },
    async stop(): Promise<number> {
      const startMs = performance.now();
      child.kill("SIGTERM");
      const [code] = (await once(child, "exit")) as [number | null];
      assert.equal(code, 0);
      return performance.now() - startMs;
    },
  };
}

async function call(url: string): Promise<void> {
  let sent = 0;
  const lane = async () => {
    while (sent++ < CALLS) assert.equal((await sendHttp(url + LONG_PATH)).status, 404);
  };
  await Promise.all(Array.from({ length: LANES }, lane));
}

for (const [name, { begin, skip = false }] of Object.entries(faults)) {
  test(`the service starts, answers and stops while its log is ${name}`, { skip }, async (t) => {
    const { stderr, recover } = begin();
    const service = await start("ignore", stderr);
    await waitUntil(service.isHealthy, START_MS);
    await call(service.url);
    const healthMs = performance.now();
    assert.ok(await service.isHealthy());
    t.diagnostic(`a health check took ${(performance.now() - healthMs).toFixed(0)} ms`);
    const readLost = async () => (await scrape(service.metricsUrl)).sum("arbor_log_lines_lost_total") ?? 0;
    const lost = await readLost();
    assert.ok(lost > 0 && lost < CALLS, `${lost} lines were lost`);
    if (recover !== undefined) {
      const readLog = recover();
      // The last lines of requests may be lost only now, when they are written together.
      const said = await waitUntil(() => /^\s*\{[^\n]*"lost":(\d+)[^\n]*\n/m.exec(readLog()) ?? undefined);
      const allLost = Number(said[1]);
      assert.equal(allLost, await readLost());
      await service.stop();
      const lines = readLog().trim().split("\n");
      const logged = lines.map((line) => JSON.parse(line) as { msg: string });
      // The lost lines are those of requests: what was logged before them has waited.
      assert.equal(logged.filter(({ msg }) => msg === "request").length, CALLS - allLost);
      assert.equal(logged.filter((line) => "lost" in line).length, 1);
      assert.deepEqual([logged.some(({ msg }) => msg === "started"), logged.at(-1)?.msg], [true, "stopped"]);
    } else {
      const ms = await service.stop();
      assert.ok(ms < 5_000, `the stop took ${ms.toFixed(0)} ms`);
      t.diagnostic(`the stop took ${ms.toFixed(0)} ms`);
    }
  });
}

for (const [name, begin] of Object.entries({
  "a full pipe": stalledPipe,
  "a device without room": () => ({ stderr: open("/dev/full", constants.O_WRONLY) }),
})) {
  test(`the service runs although standard output and error are ${name}`, async () => {
    const { stderr: fd } = begin();
    assert.ok(typeof fd === "number");
    const service = await start(fd, fd);
    await waitUntil(service.isHealthy, START_MS);
    await service.stop();
  });
}

test("a start that fails ends although nobody reads the log", async () => {
  const { stderr } = stalledPipe();
  const { child } = await start("ignore", stderr, ["--log-level", "trace", "--data", "/dev/null/none"]);
  const startMs = performance.now();
  const [code] = (await once(child, "exit")) as [number | null];
  assert.ok(code !== null && code > 0, `exit code ${code}`);
  assert.ok(performance.now() - startMs < 20_000);
});
