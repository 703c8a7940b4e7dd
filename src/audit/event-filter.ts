// The filters of ListEvents and TailEvents, and which index finds their rows.
import type { Timestamp } from "@bufbuild/protobuf/wkt";
import type { ListEventsRequest, TailEventsRequest } from "#gen/arbor/audit/v1/audit_pb.js";
import { type FieldViolation, invalidArgument } from "../kernel/errors.js";
import { isUidp, isWithin, rootOf } from "../kernel/uidp.js";
import { splitOrder } from "../pipeline/resource/list-query.js";
import { isPrintable } from "../pipeline/resource/rules.js";
import type { AuditEventQuery, AuditEventRow, AuditFilterColumn } from "../store/audit/events.js";

type FilterColumn = AuditFilterColumn | "requestId";

/** What the events of a request have in common. */
export interface EventFilter {
  /** The organisation: events of others never match. */
  readonly rootUid: string;
  /** Their subjects lie within; the uid of the organisation also admits events without a subject. */
  readonly scope: string;
  readonly equals: Partial<Readonly<Record<FilterColumn, string>>>;
}

type Filters = Pick<TailEventsRequest, "scope" | "subject" | "actor" | "type"> &
  Partial<Pick<ListEventsRequest, "requestId">>;

const MAX_TEXT = 256;
// The last time of a Date in JavaScript, in the year 275760.
const MAX_MS = 8_640_000_000_000_000;

/** The fields by column, the one that matches the fewest events first: its index is read. */
const indexed = [
  ["subjectUid", "subject"],
  ["actorUid", "actor"],
  ["type", "type"],
] as const satisfies readonly (readonly [AuditFilterColumn, keyof Filters])[];
const fields = [...indexed, ["requestId", "requestId"] as const];

/**
 * Parses the filters that lists and streams share. The caller is authorized at the scope already.
 *
 * @throws ApiError INVALID_ARGUMENT naming each field that breaks its rule
 */
export function parseEventFilter(request: Filters): EventFilter {
  const { scope, subject, actor } = request;
  const violations: FieldViolation[] = [];
  const addViolation = (field: string, rule: string) => violations.push({ field, rule });
  const notUid = "must be a uid, such as the service assigns";
  if (subject !== "" && !isUidp(subject)) addViolation("subject", notUid);
  else if (subject !== "" && !isWithin(subject, scope)) addViolation("subject", "must be the scope or below it");
  if (actor !== "" && !isUidp(actor)) addViolation("actor", notUid);
  for (const field of ["type", "requestId"] as const) {
    const text = request[field] ?? "";
    if (!isPrintable(text)) addViolation(field, "must not contain control characters");
    else if (text.length > MAX_TEXT) addViolation(field, `must be at most ${MAX_TEXT} characters`);
  }
  if (violations.length > 0) throw invalidArgument(...violations);
  const given = fields.map(([column, field]) => [column, request[field] ?? ""] as const);
  const equals = Object.fromEntries(given.filter(([, value]) => value !== ""));
  return { rootUid: rootOf(scope), scope, equals };
}

/** Whether an event has all that the filter says. */
export function matchesFilter({ rootUid, scope, equals }: EventFilter, row: AuditEventRow): boolean {
  if (row.rootUid !== rootUid || !isInScope(scope, rootUid, row)) return false;
  for (const [column] of fields) {
    const value = equals[column];
    if (value !== undefined && row[column] !== value) return false;
  }
  return true;
}

function isInScope(scope: string, rootUid: string, { subjectUid }: AuditEventRow): boolean {
  return scope === rootUid || isWithin(subjectUid, scope);
}

/** The parts of a query that follow from the filters of a list. */
export type EventSelection = Pick<AuditEventQuery, "rootUid" | "by" | "startMs" | "endMs" | "descending" | "matches">;

/**
 * Selects the index for the filters of a list.
 *
 * @throws ApiError INVALID_ARGUMENT for a time or an order that there is not, and without a start time where no index
 * answers all filters
 */
export function selectEvents(request: ListEventsRequest, filter: EventFilter): EventSelection {
  const { rootUid, scope, equals } = filter;
  const [column] = indexed.find(([name]) => equals[name] !== undefined) ?? [];
  const rest = Object.keys(equals).filter((name) => name !== column);
  // A subject lies within the scope, which parseEventFilter has checked.
  const covered = rest.length === 0 && (scope === rootUid || column === "subjectUid");
  const start = parseTime("startTime", request.startTime);
  if (!covered && start === undefined) {
    throw invalidArgument({
      field: "startTime",
      rule: "is required for this scope and these filters; see ListEvents",
    });
  }
  return {
    rootUid,
    by: column && { column, value: equals[column] ?? "" },
    startMs: start ?? 0,
    endMs: parseTime("endTime", request.endTime) ?? MAX_MS,
    descending: parseDescending(request.orderBy),
    matches: covered ? undefined : (row) => matchesFilter(filter, row),
  };
}

function parseTime(field: string, time: Timestamp | undefined): number | undefined {
  if (time === undefined) return undefined;
  // Events have whole milliseconds: one at or after 0.1 ms is at or after 1 ms.
  const ms = Number(time.seconds) * 1_000 + Math.ceil(time.nanos / 1e6);
  if (ms >= 0 && ms <= MAX_MS) return ms;
  throw invalidArgument({ field, rule: "must not be before 1970" });
}

function parseDescending(orderBy: string): boolean {
  const order = splitOrder(orderBy)?.join(" ");
  if (order === undefined || order === "time desc") return true;
  if (order === "time" || order === "time asc") return false;
  throw invalidArgument({ field: "orderBy", rule: 'must be "time desc" or "time asc"' });
}
