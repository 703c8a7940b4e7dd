// No attack: ends the process that serves at once, or one of those, as a fault in native code does.
import { workersOf } from "../../support/workers.js";
import { type Attack, Counts, pause } from "../support/attack.js";

const AFTER_MS = 500;

export const attack: Attack = {
  async run({ pid }, stop) {
    const counts = new Counts();
    await pause(AFTER_MS, stop);
    process.kill(workersOf(pid)[0] ?? pid, "SIGKILL");
    counts.add("kills");
    await pause(60_000, stop);
    return counts;
  },
};
