// What `arbor audit` prints, on the host and over the API: events, and the state of a verified log.
import type { JsonObject } from "@bufbuild/protobuf";
import { EventSchema } from "#gen/arbor/audit/v1/audit_pb.js";
import type { LogReport } from "../../audit/verify.js";
import { createColumn } from "../remote/iam/columns.js";
import { type ColumnFlags, selectColumns } from "../remote/iam/select-columns.js";
import { createListFormatter, type ListColumn, type ListFormatter } from "./format.js";
import type { Terminal } from "./terminal.js";
import { formatTime } from "./time.js";

/** The columns of the table. */
export const columns: readonly ListColumn[] = [
  createColumn("TIME", "time"),
  createColumn("TYPE", "type", "path"),
  createColumn("BY", "actorName"),
  { title: "CHANGE", kind: "prose", cell: ({ body }) => formatChange(body) },
  createColumn("FROM", "remoteAddress"),
  createColumn("REQUEST", "requestId", "uid"),
  createColumn("ACTOR", "actorUid"),
  createColumn("SUBJECT", "subjectUid"),
];

/** What says nothing to people: when a resource changed is when the event happened, and its uid is the subject. */
const UNTOLD = /^(?:uid|id|createTime|updateTime|createdAt|updatedAt|lastUpdated|lastSeen|lastSeenTime)$/;
/** The longest value of a field that is shown, and of all together, in characters. */
const MAX_VALUE = 40;
const MAX_CHANGE = 120;

/**
 * Formats what an event says has changed in a few words: `role builder → viewer` of an update, and the fields of what was
 * created or deleted.
 */
export function formatChange(body: unknown): string {
  if (!isObject(body)) return "";
  const { before, after } = body;
  const fields =
    isObject(before) && isObject(after)
      ? listChangedFields(before, after)
      : listFields(isObject(after) ? after : before);
  const digests = [body.beforeDigest, body.afterDigest].some(isObject) ? ["too large to be shown"] : [];
  return truncate([...fields, ...digests].join(", "), MAX_CHANGE);
}

function listChangedFields(before: JsonObject, after: JsonObject): string[] {
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])].filter((name) => !UNTOLD.test(name));
  return names
    .filter((name) => JSON.stringify(before[name]) !== JSON.stringify(after[name]))
    .map((name) => `${name} ${formatValue(before[name])} → ${formatValue(after[name])}`);
}

function listFields(resource: unknown): string[] {
  if (!isObject(resource)) return [];
  const names = Object.keys(resource).filter((name) => !UNTOLD.test(name));
  return names.map((name) => `${name} ${formatValue(resource[name])}`);
}

// A resource is known by its name, otherwise by its uid.
function formatValue(value: unknown): string {
  if (value === undefined || value === "") return "-";
  if (typeof value === "string") return truncate(value, MAX_VALUE);
  const { name, email, uid } = isObject(value) ? value : {};
  const known = [name, email, uid].find((one) => typeof one === "string" && one !== "");
  return truncate(typeof known === "string" ? known : JSON.stringify(value), MAX_VALUE);
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function truncate(text: string, length: number): string {
  return text.length > length ? `${text.slice(0, length - 1)}…` : text;
}

/** How commands print events. */
export type EventView = ColumnFlags;

/**
 * Creates the formatter of events.
 *
 * @throws CommandError INVALID_ARGUMENT for a column that there is not
 */
export function createEventFormatter(view: EventView, terminal: Terminal): ListFormatter {
  return createListFormatter(view.output, "events", selectColumns(EventSchema, columns, view), terminal);
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
