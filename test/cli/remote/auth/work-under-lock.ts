import { setTimeout as sleep } from "node:timers/promises";
import { withLock } from "../../../../src/cli/shared-file.js";

const [lock = "", ms] = process.argv.slice(2);
await withLock(lock, async () => {
  process.stderr.write("begun\n");
  await sleep(Number(ms));
  process.stderr.write("done\n");
});
await sleep(60_000);
