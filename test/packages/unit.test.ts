// The systemd unit: what systemd says of it, and the service under its filter of system calls.
import assert from "node:assert/strict";
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, chownSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { after, describe, test } from "node:test";
import { promisify } from "node:util";
import { environmentWithoutSettings, PROJECT, scriptArguments } from "../support/project.js";
import { tempDir } from "../support/temp-dir.js";
import { workersOf } from "../support/workers.js";
import { walkThrough } from "./walkthrough.js";

const run = promisify(execFile);
const UNIT = join(PROJECT, "deploy/systemd/arbor.service");
const LAUNCHER = join(PROJECT, "test/packages/run_filtered.py");
/** Debian's nobody. */
const USER = 65534;
const START_MS = 30_000;

const unit = readFileSync(UNIT, "utf8");
const readValue = (key: string) => new RegExp(`^${key}=(.*)$`, "m").exec(unit)?.[1];

describe("systemd-analyze security", () => {
  const analyze = (file: string, threshold: number) =>
    run("systemd-analyze", ["--no-pager", "security", "--offline=true", `--threshold=${threshold}`, file]);

  test("finds an exposure of at most 2.0", async () => {
    const { stdout } = await analyze(UNIT, 20);
    const [, exposure = ""] = /Overall exposure level for arbor.service: ([\d.]+)/.exec(stdout) ?? [];
    assert.ok(Number(exposure) > 0 && Number(exposure) <= 2, stdout);
  });

  test("finds more in a unit without its filter: the control", async () => {
    const file = join(tempDir(), "arbor.service");
    writeFileSync(file, unit.replace(/^(SystemCall|Protect|Private|Restrict).*\n/gm, ""));
    await assert.rejects(analyze(file, 20));
  });
});

/** What the unit runs, without the program. */
const serveArguments = readValue("ExecStart")?.split(" ").slice(1) ?? [];

describe("the unit", () => {
  test("is one that systemd accepts, and so is that of several nodes", async () => {
    for (const name of ["arbor.service", "arbor@.service"]) {
      const directory = tempDir();
      const text = readFileSync(join(PROJECT, "deploy/systemd", name), "utf8");
      // Nothing is installed here, and systemd looks for the program and the user.
      const file = join(directory, name.replace("@", "@a"));
      writeFileSync(join(directory, name), text.replace("/usr/bin/arbor", "/bin/true").replace(/=arbor$/gm, "=daemon"));
      const { stderr } = await run("systemd-analyze", ["verify", "--man=no", file]);
      assert.doesNotMatch(stderr, new RegExp(name.replace(".service", "")), stderr);
    }
  });

  test("leaves the compiler of the JavaScript engine its memory", () => {
    assert.equal(readValue("MemoryDenyWriteExecute"), undefined);
  });

  test("waits longer than the drain delay and the drain time of the packaged settings", async () => {
    const command = ["config", "print", "--json", "--config", join(PROJECT, "deploy/debian/arbor.json")];
    const { stdout } = await run(process.execPath, [...scriptArguments("src/main.ts"), ...command], {
      env: environmentWithoutSettings(),
    });
    const { drainDelay, drainTime } = JSON.parse(stdout) as Record<string, { value: string }>;
    assert.match(`${drainDelay?.value} ${drainTime?.value}`, /^[1-9]\d*s \d+s$/);
    const seconds = Number.parseInt(drainDelay?.value ?? "", 10) + Number.parseInt(drainTime?.value ?? "", 10);
    assert.ok(Number(readValue("TimeoutStopSec")) > seconds + 5);
  });
});

describe("the service under the unit's filter of system calls", () => {
  const started: ChildProcess[] = [];
  after(() => {
    for (const child of started) child.kill("SIGKILL");
  });

  const spawnFiltered = (denied: string, args: readonly string[]) =>
    spawn(
      "/usr/bin/python3",
      [LAUNCHER, UNIT, String(USER), denied, process.execPath, ...scriptArguments("src/main.ts"), ...args],
      { env: environmentWithoutSettings(), stdio: ["ignore", "pipe", "pipe"], timeout: START_MS, cwd: "/" },
    );

  function ownDirectory(): string {
    const directory = tempDir();
    chownSync(directory, USER, USER);
    chmodSync(directory, 0o700);
    return directory;
  }

  async function serve(denied: string, data: string, workers = 1) {
    const own = ["--listen", "127.0.0.1:0", "--data", join(data, "arbor"), "--workers", String(workers)];
    const child = spawnFiltered(denied, [...serveArguments, ...own]);
    started.push(child);
    let log = "";
    child.stderr.on("data", (chunk: Buffer) => {
      log += chunk.toString();
    });
    const ended = once(child, "close");
    const line = await Promise.race([once(createInterface({ input: child.stdout }), "line"), ended]);
    const url = /^arbor listening on (\S+)$/.exec(String(line[0]))?.[1];
    return { child, url, ended, log: () => log };
  }

  async function bootstrap(denied: string, data: string, org = "example") {
    const child = spawnFiltered(denied, ["bootstrap", "--org", org, "--json", "--data", join(data, "arbor")]);
    const output: Buffer[] = [];
    child.stdout.on("data", (chunk: Buffer) => output.push(chunk));
    const [code] = await once(child, "close");
    return { code, made: code === 0 ? JSON.parse(Buffer.concat(output).toString()) : undefined };
  }

  for (const workers of [1, 2]) {
    test(`walks through its calls with ${workers} workers, over REST and gRPC, and drains`, async () => {
      const data = ownDirectory();
      assert.equal((await bootstrap("", data, "first")).code, 0);
      const { child, url, ended, log } = await serve("", data, workers);
      assert.ok(url !== undefined, log());
      // The port of the service, which the audience of the token has, is known from its start on.
      const { code, made } = await bootstrap("", data);
      assert.equal(code, 0);
      await walkThrough({ url, token: made.token, group: made.group });
      const servers = workers === 1 ? [child.pid] : workersOf(child.pid ?? 0);
      assert.equal(servers.length, workers);
      for (const pid of servers) {
        const status = readFileSync(`/proc/${pid}/status`, "utf8");
        assert.match(status, /^Seccomp:\t2$/m, "the filter applies to a process that served");
        assert.match(status, new RegExp(`^Uid:\t${USER}\t`, "m"));
      }
      child.kill("SIGHUP");
      child.kill("SIGTERM");
      assert.deepEqual(await ended, [0, null], log());
    });
  }

  for (const denied of ["epoll_pwait,epoll_wait", "fdatasync,fsync", "mprotect"]) {
    test(`cannot serve where ${denied} fails too: a control`, async () => {
      const data = ownDirectory();
      if ((await bootstrap(denied, data)).code !== 0) return;
      const { child, url, ended } = await serve(denied, data);
      child.kill("SIGKILL");
      await ended;
      assert.equal(url, undefined);
    });
  }
});
