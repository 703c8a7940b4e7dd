// Deletes the old rows of the log of a directory in small batches until it is killed; prints a line as it signs each
// checkpoint, which is before the transaction.
import { openLog } from "./log-kit.js";

let [isDeleting, nowMs] = [false, Date.now()];
const log = await openLog(process.argv[2], () => {
  if (isDeleting) process.stdout.write("batch\n");
  nowMs = Math.max(nowMs, Date.now());
  return nowMs;
});
isDeleting = true;
await log.retention(86_400_000, { batchRows: 4 }).pass();
process.stdout.write("end\n");
await log.close();
