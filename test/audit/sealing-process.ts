// Writes rows into the log of a directory and seals them in small batches until it is killed; prints
// how many rows each pass has sealed.
import { setImmediate as nextTurn } from "node:timers/promises";
import { rootUid } from "../support/rows.js";
import { auditRow, openLog } from "./log-kit.js";

const log = await openLog(process.argv[2]);
const sealer = log.sealer({ batchRows: 4 });

async function write(): Promise<never> {
  for (let i = 0; ; i++) await log.append(auditRow(i % 3 === 0 ? "" : rootUid(i % 3), { requestId: String(i) }));
}

async function seal(): Promise<never> {
  for (;;) {
    process.stdout.write(`${await sealer.pass()}\n`);
    // A pass with nothing to do does not yield to the event loop.
    await nextTurn();
  }
}

await Promise.all([write(), write(), seal()]);
