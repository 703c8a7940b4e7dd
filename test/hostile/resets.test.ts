// Streams that are reset, deadlines that expire and calls that are refused half
// way: the process survives, and callers lose only what they gave up. Runs on
// every version of Node that the service runs on.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { deadlineRound, newClient, prepareLists } from "./attacks/short-deadlines.js";
import { type Arena, openArena, type Row } from "./support/arena.js";
import { Counts } from "./support/attack.js";

const SLOWED_ROUNDS = 5;
/** A service that gets a fifth of a processor: how long it stands still, and how long it runs, in milliseconds. */
const STILL_MS = 40;
const RUNNING_MS = 10;
/** Long enough to be sent in, too short to be answered in, in milliseconds. */
const SLOWED_DEADLINE_MS = 50;

const rows: readonly Row[] = [
  { name: "resets of streams beside one that stays open", attacks: ["resets"] },
  { name: "resets on hundreds of sessions of one address", attacks: ["reset-sessions"] },
  { name: "deadlines of 5 ms beside patient calls", attacks: ["short-deadlines"] },
  { name: "large bodies of refused gRPC calls", attacks: ["refused-bodies"] },
];

describe("the service under resets", () => {
  let arena: Arena;
  before(async () => {
    arena = await openArena();
  });
  after(() => arena?.close());

  for (const row of rows) {
    it(`serves others: ${row.name}`, async () => {
      const { faults } = await arena.run(row);
      assert.deepEqual(faults, []);
    });
  }

  it("slow as it may be, ends only the calls whose deadlines expired", async () => {
    await arena.rest();
    const { service, target } = await arena.ready();
    await prepareLists(target);
    const counts = new Counts();
    let isStill = false;
    const pace = () => {
      service.signal(isStill ? "SIGCONT" : "SIGSTOP");
      isStill = !isStill;
      timer = setTimeout(pace, isStill ? STILL_MS : RUNNING_MS);
    };
    let timer = setTimeout(pace, 0);
    const client = newClient(target.url);
    try {
      for (let i = 0; i < SLOWED_ROUNDS; i++) await deadlineRound(client, target.token, counts, SLOWED_DEADLINE_MS);
    } finally {
      clearTimeout(timer);
      service.signal("SIGCONT");
      client.close();
    }
    console.log(`slowed: ${JSON.stringify(counts.done)}`);
    assert.ok((counts.done["impatient DEADLINE_EXCEEDED"] ?? 0) > 200, "too few deadlines expired to show anything");
    assert.deepEqual(counts.problems, []);
    assert.ok(service.alive(), service.ending());
  });
});
