// Callers that fail often are slowed down; callers with valid credentials are not.
import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { createFailureCounter } from "../../../src/issuer/sts/failure-limiter.js";
import { createFailureThrottle, type FailureThrottle } from "../../../src/issuer/sts/failure-throttle.js";
import { permissionDenied, unavailable } from "../../../src/kernel/errors.js";
import { startStopwatch } from "../../support/stopwatch.js";

const LIMITS = { perName: { points: 30, seconds: 60 }, perAddress: { points: 70, seconds: 60 } };
const reject = () => {
  throw permissionDenied("this");
};
const at = (remoteAddress: string, name: string) => ({ remoteAddress, name });

async function outcome(work: Promise<unknown>): Promise<string> {
  return work.then(
    () => "done",
    (error: Error) => error.message.split(":")[0] ?? "",
  );
}

async function fail(limiter: FailureThrottle, count: number, address: string, name: (i: number) => string) {
  for (let i = 0; i < count; i++) await outcome(limiter.run(at(address, name(i)), reject));
}

/** How long something takes, in milliseconds, and how much of it without waiting for a processor. */
const timesOf = async (work: Promise<unknown>) => {
  const [startMs, elapsedMs] = [performance.now(), startStopwatch()];
  await work;
  return { ms: performance.now() - startMs, ownMs: elapsedMs() };
};

test("failures beyond the limit are slowed to 20 per second, and valid calls pass at once", async () => {
  const limiter = createFailureThrottle(LIMITS);
  assert.ok((await timesOf(fail(limiter, 30, "192.0.2.1", () => "a"))).ownMs < 500, "up to the limit nothing waits");
  assert.ok((await timesOf(fail(limiter, 20, "192.0.2.1", () => "a"))).ms > 800);
  await sleep(110);
  const good = () => outcome(limiter.run(at("192.0.2.1", "a"), () => "good"));
  const { ownMs } = await timesOf(Promise.all(Array.from({ length: 30 }, good)));
  // Rejected ones would take 1.5 s.
  assert.ok(ownMs < 500, `30 good ones took ${ownMs} ms`);
});

test("a full queue rejects, and no caller waits longer than 2 s", async () => {
  const limiter = createFailureThrottle(LIMITS);
  await fail(limiter, 30, "192.0.2.1", () => "a");
  const elapsedMs = startStopwatch();
  const flood = await Promise.all(Array.from({ length: 60 }, () => outcome(limiter.run(at("192.0.2.1", "a"), reject))));
  const counts = [
    flood.filter((one) => one === "Permission denied").length,
    flood.filter((one) => one === "Resource exhausted").length,
  ];
  assert.equal((counts[0] ?? 0) + (counts[1] ?? 0), 60);
  assert.ok((counts[1] ?? 0) >= 18 && (counts[0] ?? 0) >= 20, counts.join());
  assert.ok(elapsedMs() < 3_000);
  const hung = Array.from({ length: 2 }, () => limiter.run(at("192.0.2.1", "a"), () => sleep(4_000)));
  const waited = await timesOf(outcome(limiter.run(at("192.0.2.1", "a"), () => "good")));
  assert.ok(waited.ms > 1_900 && waited.ownMs < 3_000, `${waited.ms} ms`);
  await Promise.all(hung);
});

test("names of one address are slowed down one by one, until the address has had too many", async () => {
  const limiter = createFailureThrottle(LIMITS);
  await fail(limiter, 30, "192.0.2.1", () => "a");
  const take = (name: string, address = "192.0.2.1") => timesOf(fail(limiter, 20, address, () => name));
  assert.ok((await take("b")).ownMs < 500, "another name");
  assert.ok((await take("a", "192.0.2.2")).ownMs < 500, "the same name of another address");
  await fail(limiter, 20, "192.0.2.1", (i) => `spray ${i}`);
  assert.ok((await take("fresh")).ms > 800, "the address is over its limit, whatever is named");
  assert.ok((await take("c", "192.0.2.2")).ownMs < 500);
});

test("a name that was let in is not slowed down by the others of its address", async () => {
  const limiter = createFailureThrottle(LIMITS);
  await limiter.run(at("2001:db8::1", "honest"), () => "good");
  await fail(limiter, 70, "2001:db8::2", (i) => `spray ${i}`);
  const flood = Array.from({ length: 60 }, (_, i) => outcome(limiter.run(at("2001:db8::3", `spray ${i}`), reject)));
  assert.equal(await outcome(limiter.run(at("2001:db8::4", "honest"), () => "good")), "done");
  // Control: an unknown name finds the queue full, because the address is in the same network.
  assert.equal(await outcome(limiter.run(at("2001:db8::4", "unknown"), () => "good")), "Resource exhausted");
  await Promise.all(flood);
});

test("other errors are not counted", async () => {
  const limiter = createFailureThrottle(LIMITS);
  const down = () => Promise.reject(unavailable("now"));
  const throwError = () => Promise.reject(new TypeError("broken"));
  for (let i = 0; i < 50; i++) await outcome(limiter.run(at("192.0.2.1", "a"), i % 2 === 0 ? down : throwError));
  assert.ok((await timesOf(fail(limiter, 20, "192.0.2.1", () => "a"))).ownMs < 500);
});

test("work in a transaction is counted and never waits; admission does both before", async () => {
  const limiter = createFailureThrottle(LIMITS);
  const claimant = at("192.0.2.1", "a");
  const counted = timesOf(Promise.all(Array.from({ length: 70 }, () => outcome(limiter.count(claimant, reject)))));
  assert.ok((await counted).ownMs < 500);
  const admitted = timesOf(Promise.all(Array.from({ length: 20 }, () => limiter.admit(claimant))));
  assert.ok((await admitted).ms > 800);
});

test("a bounded number of names is counted, the ones counted last", () => {
  const counter = createFailureCounter({ points: 1, seconds: 60 }, undefined, 100);
  for (let i = 0; i < 1_000; i++) counter.add(`name ${i}`);
  assert.equal(counter.msUntilReset("name 0"), 0);
  assert.ok(counter.msUntilReset("name 999") > 0);
});
