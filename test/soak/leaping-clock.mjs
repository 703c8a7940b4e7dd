// Loaded before the service: its clocks are those of the machine and as many milliseconds as a file says. The monotonic
// clock leaps with the other one, and timers that the leap passed fire within half a second, so a leap is time that passed
// and not a clock that was set. After each leap the process collects garbage and writes how much memory is left in use.
import { appendFileSync, readFileSync } from "node:fs";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

const file = process.env.LEAPS_FILE ?? "";
/** How often the file is read, and how late a timer may be after a leap. */
const READ_MS = 50;
const CHECK_MS = 500;

let [leaptMs, leaps] = [0, 0];
const now = Date.now;
const monotonic = performance.now.bind(performance);
Date.now = () => now() + leaptMs;
performance.now = () => monotonic() + leaptMs;
globalThis.Date = new Proxy(Date, {
  construct: (target, args, self) => Reflect.construct(target, args.length === 0 ? [Date.now()] : args, self),
});

// A long timer is a short one that starts again until its time has come.
const setTimer = globalThis.setTimeout;
globalThis.setTimeout = Object.assign((callback, ms, ...args) => {
  if (!(ms > CHECK_MS)) return setTimer(callback, ms, ...args);
  let dueMs = performance.now() + ms;
  const timer = setTimer(
    () => {
      if (performance.now() < dueMs - 1) restart();
      else callback(...args);
    },
    ms / Math.ceil(ms / CHECK_MS),
  );
  const restart = timer.refresh.bind(timer);
  timer.refresh = () => {
    dueMs = performance.now() + ms;
    return restart();
  };
  return timer;
}, setTimer);

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc");

function follow() {
  let read;
  try {
    read = JSON.parse(readFileSync(file, "utf8"));
  } catch {
    // It is being written, or was not yet.
    return;
  }
  if (read.leaps === leaps) return;
  ({ leaptMs, leaps } = read);
  collect();
  // What the first collection finalized is freed by the second.
  setImmediate(() => {
    collect();
    const { heapUsed, external, rss } = process.memoryUsage();
    appendFileSync(`${file}.${process.pid}`, `${JSON.stringify({ heapUsed, external, rss })}\n`);
  });
}
follow();
setInterval(follow, READ_MS).unref();
