// No attack: stops the process for a while, again and again, as a service does
// that lets one request hold its event loop.
import { workersOf } from "../../support/workers.js";
import { type Attack, Counts, pause } from "../support/attack.js";

const EVERY_MS = 1_000;
const STALL_MS = 400;

export const attack: Attack = {
  async run({ pid }, stop) {
    const counts = new Counts();
    while (!stop.aborted) {
      for (const one of [pid, ...workersOf(pid)]) process.kill(one, "SIGSTOP");
      await pause(STALL_MS, new AbortController().signal);
      for (const one of [pid, ...workersOf(pid)]) process.kill(one, "SIGCONT");
      counts.add("stalls");
      await pause(EVERY_MS - STALL_MS, stop);
    }
    return counts;
  },
};
