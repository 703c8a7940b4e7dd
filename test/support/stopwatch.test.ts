// The measures themselves: more threads than processors make everything late, and change neither.
import assert from "node:assert/strict";
import { once } from "node:events";
import { availableParallelism } from "node:os";
import { describe, it } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { Worker } from "node:worker_threads";
import { standStill } from "./stand-still.js";
import { measureProcessorMs, readMainThreadMs, startStopwatch } from "./stopwatch.js";
import { waitUntil } from "./wait-until.js";

function compute(ms: number): void {
  const startMs = readMainThreadMs();
  while (readMainThreadMs() - startMs < ms);
}

/** Runs while threads take all processors. */
async function besideThreads(run: () => Promise<void>): Promise<void> {
  const workers = Array.from(
    { length: 8 * availableParallelism() },
    () => new Worker('require("node:worker_threads").parentPort.postMessage("on"); for (;;);', { eval: true }),
  );
  try {
    await Promise.all(workers.map((worker) => once(worker, "message")));
    await run();
  } finally {
    await Promise.all(workers.map((worker) => worker.terminate()));
  }
}

describe("a stopwatch", () => {
  it("counts what passes without a processor being wanted", async () => {
    // What the machine does meanwhile may keep threads of this process waiting as well, but hardly in each try.
    await waitUntil(async () => {
      const elapsedMs = startStopwatch();
      standStill(200);
      await delay(100);
      return elapsedMs() > 200;
    });
  });

  it("leaves out the time in which threads wait for a processor", { skip: process.platform !== "linux" }, () =>
    besideThreads(async () => {
      const [startMs, elapsedMs] = [performance.now(), startStopwatch()];
      compute(100);
      const [wallMs, ownMs] = [performance.now() - startMs, elapsedMs()];
      assert.ok(wallMs > 150, `the control: it took ${wallMs} ms`);
      assert.ok(ownMs < wallMs / 2, `${ownMs} of ${wallMs} ms`);
    }),
  );
});

describe("processor time", () => {
  it("is that of a computation, and none of a pause", () => {
    assert.ok(measureProcessorMs(() => compute(50)) >= 30);
    assert.ok(measureProcessorMs(() => standStill(300)) < 150);
  });

  it("of the main thread is none of others", { skip: process.platform !== "linux" }, () =>
    besideThreads(async () => {
      const [own, all] = [readMainThreadMs(), process.cpuUsage()];
      // The control: the process works.
      while (process.cpuUsage(all).user < 500_000) standStill(50);
      assert.ok(readMainThreadMs() - own < 200, `${readMainThreadMs() - own} ms`);
    }),
  );
});
