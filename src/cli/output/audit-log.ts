// What `arbor audit` prints, on the host and over the API: events, and the state of a verified log.
import type { LogReport } from "../../audit/verify.js";
import { createListFormatter, type ListColumn, type ListFormatter } from "./format.js";
import type { Terminal } from "./terminal.js";

const text = (value: unknown) => (typeof value === "string" ? value : "");
const columns: readonly ListColumn[] = [
  { title: "TIME", cell: ({ time }) => text(time) },
  { title: "TYPE", cell: ({ type }) => text(type) },
  { title: "SUBJECT", cell: ({ subjectUid }) => text(subjectUid) },
  { title: "ACTOR", cell: ({ actorUid }) => text(actorUid) },
  { title: "NAME", cell: ({ actorName }) => text(actorName) },
  { title: "REQUEST", cell: ({ requestId }) => text(requestId) },
  { title: "FROM", cell: ({ remoteAddress }) => text(remoteAddress) },
];

/** Creates the formatter of events: JSON lines, or a table. */
export function createEventFormatter(json: boolean, terminal: Terminal): ListFormatter {
  return createListFormatter(json ? "jsonl" : "table", "events", columns, terminal);
}

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

// A tampered database may have times that a Date cannot represent.
function formatTime(ms: number): string {
  return Math.abs(ms) <= 8.64e15 ? new Date(ms).toISOString() : `${ms} ms`;
}
