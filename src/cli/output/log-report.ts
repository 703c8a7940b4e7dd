// What `arbor audit verify` says of a log, on the host and over the API.
import type { LogReport } from "../../audit/verify.js";

/** An unsealed row older than this causes a warning, in milliseconds. A running service seals within a second. */
const TAIL_WARNING_MS = 5_000;

/** Formats the state of a log in one line. */
export function formatReport({ checkpoint, sealed, signedTimeMs, unsealed, fault }: LogReport): string {
  const signed = signedTimeMs === undefined ? "no signed head" : `head signed ${formatTime(signedTimeMs)}`;
  const since = checkpoint ? ` after entry ${checkpoint.seq} of ${formatTime(checkpoint.entryTimeMs)}` : "";
  const count = `${sealed} sealed rows${since}${fault ? " before the first fault" : ""}`;
  return `${count}, ${signed}, ${unsealed.rows} unsealed`;
}

/** Formats the warning that rows are not sealed; undefined where they are. */
export function findWarning({ unsealed: { firstTimeMs } }: LogReport, nowMs: number): string | undefined {
  const ageMs = firstTimeMs === null ? 0 : nowMs - firstTimeMs;
  if (ageMs <= TAIL_WARNING_MS) return undefined;
  const age = `${Math.floor(ageMs / 1_000)} s`;
  return `the oldest unsealed row waits for ${age}; a running server seals within one, so none runs or it cannot`;
}

// A database that was tampered with may have any time.
function formatTime(ms: number): string {
  return Math.abs(ms) <= 8.64e15 ? new Date(ms).toISOString() : `${ms} ms`;
}
