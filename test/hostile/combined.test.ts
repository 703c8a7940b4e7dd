// All attacks at once on one process, in three rounds: the good client is served
// as in each row alone, no round takes more memory than the first, and afterwards
// the service holds no more than before.
import assert from "node:assert/strict";
import { after, before, it } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { type Arena, IS_CAMPAIGN, openArena } from "./support/arena.js";

const ATTACKS = [
  "http-version-2",
  "trailing-bytes",
  "refused-bodies",
  "resets",
  "short-deadlines",
  "gzip-bombs",
  "costly-tokens",
  "foreign-issuers",
  "body-pieces",
  "pipelined-requests",
  "unfinished-bodies",
  "watchers",
  "unread-responses",
  "device-requests",
  "many-roots",
];
const SECONDS = Number(process.env.HOSTILE_SECONDS ?? (IS_CAMPAIGN ? 300 : 60));
const ROUNDS = 3;
const CALLS_A_SECOND = 100;
/** How long the service is left alone before its memory is looked at, in milliseconds. */
const QUIET_MS = 15_000;
const WARM_UP_CALLS = 500;
const MAX_GROWTH = 1.1;

let arena: Arena;
before(async () => {
  arena = await openArena();
});
after(() => arena?.close());

it("serves others under all attacks at once and keeps nothing of them", async () => {
  // What was never run is not compiled, and documents that were never requested are not there yet: neither is kept of attacks.
  await arena.run({ name: "warm-up", attacks: ATTACKS, calls: WARM_UP_CALLS, judgesResponses: false, keep: true });
  await arena.rest();
  await sleep(QUIET_MS);
  const { service } = arena;
  const idle = await measureRetainedBytes(service);
  const peaks: number[] = [];
  const faults: string[] = [];
  for (let round = 1; round <= ROUNDS; round++) {
    const calls = Math.ceil((SECONDS * CALLS_A_SECOND) / ROUNDS);
    const row = { name: `all at once, round ${round}`, attacks: ATTACKS, calls, judgesAnswers: false, keep: true };
    const result = await arena.run(row);
    faults.push(...result.faults.map((fault) => `round ${round}: ${fault}`));
    peaks.push(result.peakMib);
  }
  await arena.rest();
  await sleep(QUIET_MS);
  const after = await measureRetainedBytes(service);
  const mib = (bytes: number) => (bytes / 1024 / 1024).toFixed(1);
  console.log(`heap and external memory: ${mib(idle)} MiB idle, ${mib(after)} MiB afterwards`);
  console.log(`peaks of the rounds: ${peaks.map((peak) => peak.toFixed(0)).join(", ")} MiB`);
  const [first = 0, , last = 0] = peaks;
  assert.deepEqual(faults, []);
  assert.ok(last <= first * MAX_GROWTH, `the last round took ${last.toFixed(0)} MiB, the first ${first.toFixed(0)}`);
  assert.ok(after <= idle * MAX_GROWTH, `${mib(after)} MiB are held afterwards, ${mib(idle)} before`);
});

async function measureRetainedBytes(service: Arena["service"]): Promise<number> {
  const { heapUsed, external } = await service.memory();
  return heapUsed + external;
}
