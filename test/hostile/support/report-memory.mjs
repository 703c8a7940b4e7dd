// Loaded into the service under test by `node --expose-gc --import`: a message over the channel to its
// parent collects all garbage and is answered with the memory that is left. Nothing on the network
// reaches it.
import { setImmediate as nextTick } from "node:timers/promises";

process.on("message", async () => {
  // Finalizers release native memory after a collection; the next collection sees it gone.
  for (let i = 0; i < 5; i++) {
    globalThis.gc?.();
    await nextTick();
  }
  process.send?.(process.memoryUsage());
});
process.channel?.unref();
