// A node that delivers events, to be killed: `DIRECTORY PORT MODE [DATABASE_URL MASTER_KEY_FILE]`. It writes its URL, and
// in the mode `first` an organisation with the token of its owner. In the mode `control` it writes that an event was
// accepted before it has sent it.
import { SubscriptionQueue } from "../../src/events/delivery/subscription-queue.js";
import { startHarness } from "../support/harness.js";
import { RECEIVER_SETTINGS } from "./receiver.js";

const [data = "", port = "0", mode = "", databaseUrl, masterKeyFile] = process.argv.slice(2);
if (mode.includes("control")) {
  const { takeNext, recordOutcome } = SubscriptionQueue.prototype;
  SubscriptionQueue.prototype.takeNext = function (nowMs) {
    const seq = takeNext.call(this, nowMs);
    if (seq !== undefined) recordOutcome.call(this, seq, { kind: "accepted", status: 200, error: "" }, nowMs);
    return seq;
  };
  SubscriptionQueue.prototype.recordOutcome = () => {};
}
const harness = await startHarness({
  ...RECEIVER_SETTINGS,
  ...{ data, listen: `127.0.0.1:${port}` },
  ...(databaseUrl !== undefined && masterKeyFile !== undefined && { databaseUrl, masterKeyFile }),
});
const organisation = mode.includes("first") ? await harness.organisation("events") : undefined;
process.stdout.write(`${JSON.stringify({ url: harness.url, ...organisation })}\n`);
