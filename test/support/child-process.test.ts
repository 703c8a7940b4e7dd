import assert from "node:assert/strict";
import { once } from "node:events";
import { text } from "node:stream/consumers";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { execFile, execFileSync, spawn, spawnSync } from "./child-process.js";

const LIMIT_MS = 1_500;
// Its child holds the output open and would run for another second.
const hanging = ["-c", "echo started; sleep 2.5; true"];
const ends = ["-c", "echo ended"];

test("a process that hangs is killed, and whoever waits for it fails with its output", async () => {
  const child = spawn("sh", hanging, { timeout: LIMIT_MS });
  await assert.rejects(once(child, "close"), /^Error: sh -c .* ran for 1500 ms, having written: started\n$/);
  await assert.rejects(execFile("sh", hanging, { timeout: LIMIT_MS }), { killed: true, stdout: "started\n" });
});

test("a process that ends in time is left alone, and all of its output is read", async () => {
  const child = spawn("sh", ["-c", "echo started; sleep 0.3; echo ended"], { timeout: LIMIT_MS });
  const closed = once(child, "close");
  await delay(100);
  assert.equal(await text(child.stdout), "started\nended\n");
  assert.deepEqual(await closed, [0, null]);
  assert.equal((await execFile("sh", ends)).stdout, "ended\n");
  assert.equal(execFileSync("sh", ends, { encoding: "utf8" }), "ended\n");
  assert.equal(spawnSync("sh", ends, { encoding: "utf8" }).stdout, "ended\n");
});

test("a process that is waited for without the event loop has a limit as well", () => {
  const options = { timeout: 200, encoding: "utf8" } as const;
  assert.throws(() => spawnSync("sh", hanging, options), /exceeded its limit, having written: started\n/);
  assert.throws(() => execFileSync("sh", hanging, options), { code: "ETIMEDOUT" });
});
