// Loaded into the service under test, and into its workers, by `node --expose-gc --import`. "memory" over the channel to the
// parent of the service, or SIGUSR2 to a worker, collects all garbage, and tells what is left: over the channel, or in a
// file of the worker. Nothing on the network reaches it.
import { renameSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setImmediate as nextTick } from "node:timers/promises";

async function measure() {
  // Finalizers release native memory after a collection; the next collection sees it gone.
  for (let i = 0; i < 5; i++) {
    globalThis.gc?.();
    await nextTick();
  }
  return process.memoryUsage();
}

if (process.argv[2] === "serve-worker") {
  const file = join(tmpdir(), `arbor-memory-${process.pid}.json`);
  process.on("SIGUSR2", async () => {
    writeFileSync(`${file}.new`, JSON.stringify(await measure()));
    // Whole, or not there.
    renameSync(`${file}.new`, file);
  });
} else {
  process.on("message", async (message) => {
    if (message === "memory") process.send?.(await measure());
  });
  process.channel?.unref();
}
