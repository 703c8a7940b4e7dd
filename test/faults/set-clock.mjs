// Loaded before the service: its clock is that of the machine and as many milliseconds as a file says. The monotonic clock
// is unchanged, as it is when the clock of a machine is set.
import { readFileSync } from "node:fs";

const file = process.env.CLOCK_FILE;
const { now } = Date;
let shiftMs = 0;
const read = () => {
  try {
    shiftMs = Number(readFileSync(file, "utf8")) || 0;
  } catch {
    // There is no file until the clock is set for the first time.
  }
};
read();
setInterval(read, 50).unref();
Date.now = () => now() + shiftMs;
globalThis.Date = new Proxy(Date, {
  construct: (target, args, self) => Reflect.construct(target, args.length === 0 ? [Date.now()] : args, self),
});
