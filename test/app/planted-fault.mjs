// Loaded before the service (node --import): throws, from outside all of its code, when the process gets
// SIGUSR2. PLANTED_FAULT says how; with PLANTED_FAULT_CONTROL the service cannot listen for such errors.
import { stat } from "node:fs";

const fail = () => {
  throw new Error("planted");
};
const faults = {
  timer: () => setTimeout(fail, 1),
  rejection: () => Promise.reject(new Error("planted")),
  callback: () => stat(".", fail),
  // Again and again, until the process is gone.
  repeat: () => setInterval(fail, 20),
};

if (process.env.PLANTED_FAULT_CONTROL) {
  const on = process.on.bind(process);
  process.on = (name, listener) =>
    name === "uncaughtException" || name === "unhandledRejection" ? process : on(name, listener);
}
process.on("SIGUSR2", () => faults[process.env.PLANTED_FAULT]());
