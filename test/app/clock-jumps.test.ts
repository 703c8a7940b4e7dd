// Jumps of the clock: what is logged and counted, and which jobs wait.
import assert from "node:assert/strict";
import { test } from "node:test";
import { watchClock } from "../../src/app/clock-jumps.js";
import type { Job, JobRun } from "../../src/jobs/jobs.js";
import { createLineLog, readCounts } from "./watch-kit.js";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

function watchWithClocks() {
  const time = { wallMs: 1_000_000_000, monotonicMs: 5_000 };
  const { lines, logger } = createLineLog();
  const watch = watchClock({ logger, clock: () => time.wallMs, monotonicMs: () => time.monotonicMs });
  return {
    lines,
    watch,
    /** Lets time pass, and sets the clock by so much besides. */
    pass(ms: number, jumpMs = 0) {
      time.wallMs += ms + jumpMs;
      time.monotonicMs += ms;
    },
    values: (name: string) => readCounts(watch.sources, name),
  };
}

const createJob = (waitsAfterClockJump: boolean): Job => ({
  ...{ name: "a", problem: "b", intervalMs: 1_000, waitsAfterClockJump },
  run: async () => 7,
});

for (const [name, jumpMs] of [
  ["an hour", HOUR_MS],
  ["a day", DAY_MS],
] as const) {
  test(`a jump of ${name} forward: jobs that cannot be undone wait for an hour, others do not`, async (t) => {
    const { watch, lines, pass, values } = watchWithClocks();
    t.after(watch.stop);
    const paused = watch.pauseAfterJump(createJob(true));
    const other = watch.pauseAfterJump(createJob(false));
    const run = (job: Job) => job.run({} as JobRun);
    pass(1_000);
    assert.deepEqual([await run(paused), await run(other)], [7, 7]);
    // The job itself looks at the clock, so that it does not run before the next check.
    pass(10, jumpMs);
    assert.deepEqual([await run(paused), await run(other)], [0, 7]);
    watch.check();
    pass(HOUR_MS - 1_000);
    assert.equal(await run(paused), 0);
    pass(1_001);
    assert.equal(await run(paused), 7);
    assert.deepEqual(
      lines.map(({ level, message, fields }) => [level, message, fields.jumpSeconds]),
      [
        [
          "warn",
          "the clock of the machine jumped forward: keys do not rotate and expired rows are not deleted for now",
          jumpMs / 1000,
        ],
      ],
    );
    assert.deepEqual(values("arbor_clock_jumps_total"), { forward: 1, back: 0 });
  });

  test(`a jump of ${name} back that is taken back: no job waits`, async (t) => {
    const { watch, lines, pass, values } = watchWithClocks();
    t.after(watch.stop);
    const paused = watch.pauseAfterJump(createJob(true));
    for (const shiftMs of [-jumpMs, jumpMs]) {
      pass(1_000, shiftMs);
      assert.equal(await paused.run({} as JobRun), 7);
    }
    assert.equal(lines.length, 2);
    assert.deepEqual(values("arbor_clock_jumps_total"), { forward: 1, back: 1 });
  });

  test(`a jump of ${name} forward that is taken back: jobs run again at once`, async (t) => {
    const { watch, lines, pass, values } = watchWithClocks();
    t.after(watch.stop);
    const paused = watch.pauseAfterJump(createJob(true));
    pass(1_000, jumpMs);
    assert.equal(await paused.run({} as JobRun), 0);
    pass(1_000, -jumpMs);
    assert.equal(await paused.run({} as JobRun), 7);
    assert.equal(lines.length, 2);
    assert.deepEqual(values("arbor_clock_jumps_total"), { forward: 1, back: 1 });
  });
}

test("control: a clock that is adjusted by seconds, and a process that sleeps for a day, are no jumps", async (t) => {
  const { watch, lines, pass, values } = watchWithClocks();
  t.after(watch.stop);
  const paused = watch.pauseAfterJump(createJob(true));
  for (const jumpMs of [4_000, -4_000, 0]) {
    pass(DAY_MS, jumpMs);
    watch.check();
    assert.equal(await paused.run({} as JobRun), 7);
  }
  assert.deepEqual([lines.length, values("arbor_clock_jumps_total")], [0, { forward: 0, back: 0 }]);
});
