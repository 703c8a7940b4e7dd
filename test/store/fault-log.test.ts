// What operators learn of a fault, whichever database has it: its begin, each minute while calls fail, and its end.
import assert from "node:assert/strict";
import { test } from "node:test";
import { ApiError } from "../../src/kernel/errors.js";
import { type DatabaseFaultEvent, FaultLog } from "../../src/store/faults.js";
import { toApiError } from "../../src/store/pg/faults.js";

function openLog() {
  const events: DatabaseFaultEvent[] = [];
  let nowMs = 0;
  const log = new FaultLog({
    kinds: {
      full: { message: "it is full", stopsOnlyWrites: true },
      timeout: { message: "it is slow" },
      replaced: { message: "it is gone", isFinal: true },
    },
    onChange: (event) => events.push(event),
    monotonicMs: () => nowMs,
  });
  const passMs = (ms: number) => {
    nowMs += ms;
  };
  return { log, events, passMs };
}

test("a fault that lasts is reported once a minute with its cause, and only while statements fail", () => {
  const { log, events, passMs } = openLog();
  for (let second = 0; second <= 150; second++) {
    log.note("full", { code: "53100" });
    passMs(1_000);
  }
  passMs(600_000);
  log.noteCommit();
  assert.deepEqual(
    events.map(({ state, code, errors, durationMs }) => [state, code, errors, durationMs]),
    [
      ["began", "53100", undefined, undefined],
      ["lasts", "53100", 61, 60_000],
      ["lasts", "53100", 121, 120_000],
      ["ended", undefined, 151, 751_000],
    ],
  );
  assert.equal(log.errors.full, 151);
});

test("a commit ends a fault five seconds after its last error, unless it is final", () => {
  const { log, events, passMs } = openLog();
  for (const fault of ["full", "replaced"] as const) log.note(fault);
  passMs(4_999);
  log.noteCommit();
  assert.deepEqual([...log.current], ["full", "replaced"]);
  passMs(1);
  log.noteCommit();
  assert.deepEqual([[...log.current], events.at(-1)?.state], [["replaced"], "ended"]);
});

test("only faults that leave reads alone make a database read-only", () => {
  const { log } = openLog();
  log.note("timeout");
  assert.deepEqual([log.isFaulty, log.isReadOnly], [true, false]);
  log.note("full");
  assert.equal(log.isReadOnly, true);
});

// What no test can make a real server do beside others.
for (const [code, isFault] of [
  ["53200", true],
  ["53400", true],
  ["58030", true],
  ["XX001", true],
  ["XX002", true],
  ["28P01", true],
  ["3D000", true],
  ["57P01", true],
  ["CERT_HAS_EXPIRED", true],
  ["42601", false],
  ["42P01", false],
  ["22001", false],
] as const) {
  test(`${code} of PostgreSQL is ${isFault ? "UNAVAILABLE" : "a defect"}`, () => {
    const error = Object.assign(new Error("of the server"), { code });
    assert.equal(toApiError(error) instanceof ApiError, isFault);
  });
}
