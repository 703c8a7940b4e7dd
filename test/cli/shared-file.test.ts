import assert from "node:assert/strict";
import fs, { existsSync, readdirSync, readFileSync, utimesSync, writeFileSync } from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { dirname, join } from "node:path";
import { describe, it } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { Code } from "@connectrpc/connect";
import { withLock } from "../../src/cli/shared-file.js";
import { tempDir } from "../support/temp-dir.js";
import { commandErrorOf, run, script } from "./remote/auth/process.js";

const newLock = () => join(tempDir(), "credentials.json.lock");
const finish = async () => "done";

/** The text of a lock that this process holds. */
async function readOwner(lock: string): Promise<string> {
  return withLock(lock, async () => readFileSync(lock, "utf8"));
}

/** A pid that no process has any more. */
async function pidOfEndedProcess(): Promise<string> {
  const { child, ended } = run(process.execPath, ["-e", ""]);
  await ended;
  return String(child.pid);
}

describe("the lock of the credentials", () => {
  it("lets one in at a time, and leaves nothing", async () => {
    const lock = newLock();
    let inside = 0;
    const work = async () => {
      assert.equal(++inside, 1);
      await sleep(2);
      inside--;
    };
    await Promise.all(Array.from({ length: 10 }, () => withLock(lock, work)));
    assert.deepEqual(readdirSync(dirname(lock)), []);
  });

  it("is given back when the work fails", async () => {
    const lock = newLock();
    await assert.rejects(
      withLock(lock, () => Promise.reject(new Error("no"))),
      /^Error: no$/,
    );
    assert.equal(await withLock(lock, finish, 0), "done");
  });

  it("is waited for, and then named", async () => {
    const lock = newLock();
    await withLock(lock, async () => {
      const { code, message } = await commandErrorOf(withLock(lock, finish, 100));
      assert.equal(code, Code.Unavailable);
      assert.equal(message, `another process holds the lock ${lock}; if none does, remove it and ${lock}.break`);
    });
  });

  it("is taken from a process that is gone, by one of many", async () => {
    const lock = newLock();
    const [pid] = (await readOwner(lock)).split(" ");
    writeFileSync(lock, `${pid} ${await pidOfEndedProcess()} x`);
    let inside = 0;
    const work = async () => {
      assert.equal(++inside, 1);
      await sleep(2);
      inside--;
      return "done";
    };
    const all = await Promise.all(Array.from({ length: 10 }, () => withLock(lock, work, 5_000)));
    assert.deepEqual(new Set(all), new Set(["done"]));
    assert.deepEqual(readdirSync(dirname(lock)), []);
  });

  it("is taken away once, however long that takes", async (test) => {
    const lock = newLock();
    const [pid] = (await readOwner(lock)).split(" ");
    writeFileSync(lock, `${pid} ${await pidOfEndedProcess()} x`);
    const { rm } = fs.promises;
    fs.promises.rm = async (path, options) => {
      if (path === lock) await sleep(60);
      return rm(path, options);
    };
    syncBuiltinESMExports();
    test.after(() => {
      fs.promises.rm = rm;
      syncBuiltinESMExports();
    });
    let inside = 0;
    // The second begins while the first takes it away, and the third has it when the second could.
    const contend = async (startMs: number) => {
      await sleep(startMs);
      await withLock(lock, async () => {
        assert.equal(++inside, 1);
        await sleep(100);
        inside--;
      });
    };
    await Promise.all([0, 30, 65].map(contend));
  });

  it("is not taken from processes that cannot be seen from here", async () => {
    const lock = newLock();
    const pid = await pidOfEndedProcess();
    for (const text of [`elsewhere ${pid} x`, "", `${(await readOwner(lock)).split(" ")[0]} -1 x`]) {
      writeFileSync(lock, text);
      assert.equal((await commandErrorOf(withLock(lock, finish, 60))).code, Code.Unavailable, text);
      assert.equal(readFileSync(lock, "utf8"), text);
    }
  });

  for (const { what, text, ages } of [
    { what: "is taken after half a minute, from whomever", text: "elsewhere 1 x", ages: [20, 40] },
    {
      what: "without its text, of a process that was killed as it took it, is taken after seconds",
      text: "",
      ages: [2, 8],
    },
  ] as const) {
    it(what, async () => {
      const lock = newLock();
      const [young, old] = ages;
      for (const ageS of ages) {
        writeFileSync(lock, text);
        utimesSync(lock, Date.now() / 1000, Date.now() / 1000 - ageS);
        if (ageS === old) assert.equal(await withLock(lock, finish, 1_000), "done");
        else assert.equal((await commandErrorOf(withLock(lock, finish, 60))).code, Code.Unavailable, `${young}`);
      }
      assert.deepEqual(readdirSync(dirname(lock)), []);
    });
  }

  it("is taken although a process was killed while it took it away", async () => {
    const lock = newLock();
    const age = (file: string, ageS: number) => utimesSync(file, Date.now() / 1000, Date.now() / 1000 - ageS);
    writeFileSync(lock, "elsewhere 1 x");
    writeFileSync(`${lock}.break`, "");
    age(lock, 40);
    age(`${lock}.break`, 2);
    // The guard may be that of a process that runs.
    assert.equal((await commandErrorOf(withLock(lock, finish, 60))).code, Code.Unavailable);
    age(`${lock}.break`, 8);
    assert.equal(await withLock(lock, finish, 5_000), "done");
    assert.deepEqual(readdirSync(dirname(lock)), []);
  });

  it("is waited for until one that nobody holds is stale", async () => {
    const lock = newLock();
    // As it is 28 s after a process of another machine was killed.
    writeFileSync(lock, "elsewhere 1 x");
    utimesSync(lock, Date.now() / 1000, Date.now() / 1000 - 28);
    assert.equal(await withLock(lock, finish), "done");
  });

  it("that another has taken meanwhile is left to it", async () => {
    const lock = newLock();
    await withLock(lock, async () => writeFileSync(lock, "elsewhere 1 x"));
    assert.equal(readFileSync(lock, "utf8"), "elsewhere 1 x");
  });

  it("lets the work be done before an interrupt ends the process", async () => {
    const interrupt = async (signal: NodeJS.Signals) => {
      const lock = newLock();
      const { child, waitForOutput, ended } = script("work-under-lock.ts", [lock, "300"]);
      await waitForOutput(/begun/);
      child.kill(signal);
      const end = await ended;
      assert.equal(end.signal, signal);
      assert.match(end.stderr, /done/);
      assert.equal(existsSync(lock), false);
    };
    await Promise.all((["SIGINT", "SIGTERM", "SIGHUP"] as const).map(interrupt));
  });

  it("does not hold up a second interrupt", async () => {
    const lock = newLock();
    const { child, waitForOutput, ended } = script("work-under-lock.ts", [lock, "60000"]);
    await waitForOutput(/begun/);
    child.kill("SIGINT");
    await sleep(100);
    child.kill("SIGINT");
    const end = await ended;
    assert.equal(end.signal, "SIGINT");
    assert.doesNotMatch(end.stderr, /done/);
  });
});
