// What judges the attacks can fail: a service that stalls, takes memory or ends is
// noticed, by the good client's figures or by what the system says of the process.
import assert from "node:assert/strict";
import { after, before, it } from "node:test";
import { type Arena, openArena } from "./support/arena.js";
import { faultsIn, figuresOf, JUDGES_TIMES, type Sample } from "./support/figures.js";
import { WORKERS } from "./support/service.js";

const CALLS = 300;
const DEMANDS = { calls: 100, answered: 0.999, p99Ms: 50 };

let arena: Arena;
before(async () => {
  arena = await openArena();
});
after(() => arena?.close());

it("finds a service well that nothing is done to", async () => {
  const { faults } = await arena.run({ name: "control: no attack", attacks: [], calls: CALLS });
  assert.deepEqual(faults, []);
});

it("notices a service that stalls", { timeout: 60_000, skip: !JUDGES_TIMES && "times are not judged" }, async () => {
  const { faults } = await arena.run({ name: "control: stalls", attacks: ["control-stall"], calls: CALLS });
  assert.match(faults.join("\n"), /p99 \d/);
});

it("notices memory above the ceiling", async () => {
  const row = { name: "control: memory", attacks: ["unfinished-bodies"], calls: CALLS, ceilingMib: 0 };
  const { faults } = await arena.run(row);
  assert.match(faults.join("\n"), /MiB resident, above/);
});

it("notices a service that ends", async () => {
  const { faults } = await arena.run({ name: "control: ends", attacks: ["control-kill"], calls: CALLS });
  assert.match(faults.join("\n"), WORKERS === undefined ? /it ended with SIGKILL/ : /1 workers ended/);
  // Other workers go on.
  if (WORKERS === undefined) assert.match(faults.join("\n"), /% answered/);
});

const sample = (startMs: number, ms: number, failure?: string): Sample => ({ kind: "get", startMs, ms, failure });
const steady = Array.from({ length: 1_000 }, (_, i) => sample(10 * i, 2));

it("counts failures always, and times only while the client itself was punctual", () => {
  assert.deepEqual(faultsIn(figuresOf(steady, new Map()), DEMANDS), []);
  const slow = steady.map((one, i) => (i % 50 === 0 ? { ...one, ms: 200 } : one));
  assert.match(faultsIn(figuresOf(slow, new Map()), DEMANDS).join(), /p99 200\.0 ms/);
  const late = new Map(Array.from({ length: 40 }, (_, slice) => [slice, slice < 10 ? 30 : 1] as const));
  const lateOnly = steady.map((one) => (one.startMs < 2_000 ? { ...one, ms: 200 } : one));
  assert.deepEqual(faultsIn(figuresOf(lateOnly, late), DEMANDS), []);
  const failed = lateOnly.map((one, i) => (i < 2 ? { ...one, failure: "HTTP 500" } : one));
  assert.match(faultsIn(figuresOf(failed, late), DEMANDS).join(), /99\.80 % answered \(2 × get: HTTP 500\)/);
  const always = new Map(Array.from({ length: 60 }, (_, slice) => [slice, 30] as const));
  assert.match(faultsIn(figuresOf(steady, always), DEMANDS).join(), /late itself/);
  assert.match(faultsIn(figuresOf(steady.slice(0, 50), new Map()), DEMANDS).join(), /only 50 calls/);
});
