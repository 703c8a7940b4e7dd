// The rules for what callers say of advisories and their events.
import type { DescField, DescOneof } from "@bufbuild/protobuf";
import { type ReflectMessage, reflect } from "@bufbuild/protobuf/reflect";
import { timestampMs } from "@bufbuild/protobuf/wkt";
import {
  type AdvisoryEvent_ComponentLocationChanged as ComponentMoved,
  AdvisoryEvent_ComponentLocationChangedSchema as ComponentMovedSchema,
} from "#gen/chainguard/platform/vulnerabilities/v1/advisories_pb.js";
import {
  type AdvisoryEvent,
  AdvisoryEventSchema,
  ReviewState,
} from "#gen/chainguard/platform/vulnerabilities/v2beta1/advisories_pb.js";
import { type FieldViolation, invalidArgument, resourceExhausted } from "../../kernel/errors.js";
import type { Refuse } from "../../pipeline/resource/list-query.js";
import { type FieldRule, isPrintable } from "../../pipeline/resource/rules.js";
import type { AdvisoryEventRow } from "../../store/port.js";

/** How many entries a list in an advisory or an event holds at most, and how many events an advisory. */
export const MAX_ENTRIES = 1_000;
/** How long a name, a path, a version or an id is at most, in characters. */
const MAX_TEXT = 512;
/** The largest request that makes, changes or looks for advisories, in bytes: events, or values to filter by. */
export const MAX_ADVISORY_REQUEST = 1024 * 1024;
/** How long the entries of a list are together at most, in characters. */
const MAX_LIST = 32 * 1024;
/** How long the events of an advisory are together at most, as the JSON of what they say, in characters. */
const MAX_EVENTS = 256 * 1024;
/** How long a note is at most, in characters. */
const MAX_NOTE = 16 * 1024;
/** How long findings are at most, in bytes. */
const MAX_FINDINGS = 64 * 1024;
/** How far ahead of ours the clocks of callers may be, in milliseconds. */
const MAX_AHEAD_MS = 60_000;

const ONE_LINE = `one line of at most ${MAX_TEXT} characters`;

/** The rule for names that may be left out: one line of at most 512 characters. */
export const isLineField: FieldRule = (value, field) =>
  isLine(String(value)) ? undefined : `${field} must be ${ONE_LINE}`;

/** The rule for names that may not be left out. */
export const isRequiredLine: FieldRule = (value, field) =>
  value === "" ? `${field} is required` : isLineField(value, field);

/** The rule for lists of names, such as aliases. */
export const isLines: FieldRule = (value, field) => {
  const lines = value as readonly string[];
  if (lines.length > MAX_ENTRIES) return `${field} must be at most ${MAX_ENTRIES}`;
  if (!lines.every((line) => line !== "" && isLine(line))) return `${field} must each be ${ONE_LINE}`;
  const length = lines.reduce((sum, line) => sum + line.length, 0);
  return length > MAX_LIST ? `${field} must be at most ${MAX_LIST} characters together` : undefined;
};

/**
 * Makes sure that an advisory with these events can be shown among others: every list shows all events.
 *
 * @param events all of them, as stored
 * @throws ApiError RESOURCE_EXHAUSTED for more than 1,000 events, or events of more than 256 KiB.
 */
export function requireRoomFor(events: readonly Pick<AdvisoryEventRow, "data">[]): void {
  if (events.length > MAX_ENTRIES) throw resourceExhausted(`events: an advisory has at most ${MAX_ENTRIES}`);
  const length = events.reduce((sum, { data }) => sum + JSON.stringify(data).length, 0);
  if (length > MAX_EVENTS)
    throw resourceExhausted(`events: those of an advisory have at most ${MAX_EVENTS} characters together`);
}

/** An event as callers say it. */
export interface SaidEvent {
  /** What version 2 knows of it. Its `createTime` is when it happened; absent: now. */
  readonly event: AdvisoryEvent;
  /** That the component has moved, for which version 2 has no type. */
  readonly moved?: ComponentMoved | undefined;
}

/**
 * Makes sure that an event can be stored and shown.
 *
 * @param nowMs in epoch milliseconds
 * @param at what precedes the field names in errors
 * @throws ApiError INVALID_ARGUMENT naming each field that breaks its rule.
 */
export function requireGoodEvent({ event, moved }: SaidEvent, nowMs: number, at = ""): void {
  const violations: FieldViolation[] = [];
  const refuse: Refuse = (field, rule) => violations.push({ field: at + field, description: `${at}${field} ${rule}` });
  const { reviewState, createTime, findings, issue = "" } = event;
  if (reviewState === ReviewState.UNSPECIFIED) refuse("reviewState", "is required");
  else if (ReviewState[reviewState] === undefined) refuse("reviewState", "must be a state of a review");
  const ms = createTime === undefined ? nowMs : timestampMs(createTime);
  // One yet to come would stay the latest event until then.
  if (ms < 0 || ms > nowMs + MAX_AHEAD_MS) refuse("createTime", "must be between 1970 and now");
  if (findings.length > MAX_FINDINGS) refuse("findings", `must be at most ${MAX_FINDINGS} bytes`);
  else if (findings.length > 0 && !isJson(findings)) refuse("findings", "must be JSON");
  if (!isLine(issue)) refuse("issue", `must be ${ONE_LINE}`);
  if (moved) checkFields(reflect(ComponentMovedSchema, moved), "componentLocationChanged", refuse);
  else checkOneofs(reflect(AdvisoryEventSchema, event), "", refuse);
  if (violations.length > 0) throw invalidArgument(...violations);
}

// One of each group has to be there: what happened, and of a detection, how.
function checkOneofs(message: ReflectMessage, path: string, refuse: Refuse): void {
  for (const oneof of message.oneofs) {
    const field = message.oneofCase(oneof);
    if (field === undefined) refuse(path || oneof.localName, `must have one of ${membersOf(oneof)}`);
    else if (field.fieldKind === "message") checkFields(message.get(field), joined(path, field), refuse);
  }
}

function checkFields(message: ReflectMessage, path: string, refuse: Refuse): void {
  checkOneofs(message, path, refuse);
  for (const field of message.fields) {
    const at = joined(path, field);
    if (field.fieldKind === "enum") {
      if (field.enum.value[message.get(field)] === undefined) refuse(at, "must be one of its values");
    } else if (field.fieldKind === "list") {
      const broken = isLines([...message.get(field)], at);
      if (broken) refuse(at, broken.slice(at.length + 1));
    } else if (field.fieldKind === "scalar") {
      const text = String(message.get(field));
      if (field.name !== "note") {
        if (!isLine(text)) refuse(at, `must be ${ONE_LINE}`);
      } else if (text.length > MAX_NOTE) refuse(at, `must be at most ${MAX_NOTE} characters`);
      else if (!isText(text)) refuse(at, "must not contain control characters");
    }
  }
}

function joined(path: string, field: DescField): string {
  return path === "" ? field.jsonName : `${path}.${field.jsonName}`;
}

function membersOf(oneof: DescOneof): string {
  return oneof.fields.map(({ jsonName }) => jsonName).join(", ");
}

function isLine(text: string): boolean {
  return text.length <= MAX_TEXT && isPrintable(text);
}

// Notes have lines.
function isText(text: string): boolean {
  return isPrintable(text.replace(/[\t\r\n]/g, ""));
}

function isJson(bytes: Uint8Array): boolean {
  try {
    JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
    return true;
  } catch {
    return false;
  }
}
