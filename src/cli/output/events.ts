// The events of the audit log, as the API and the commands on the host print them.
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
