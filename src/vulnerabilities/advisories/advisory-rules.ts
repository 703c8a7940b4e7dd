// The rules for the fields of advisories and of their events.
import type { DescField, DescOneof } from "@bufbuild/protobuf";
import { type ReflectMessage, reflect } from "@bufbuild/protobuf/reflect";
import { timestampMs } from "@bufbuild/protobuf/wkt";
import {
  type AdvisoryEvent,
  AdvisoryEventSchema,
  ReviewState,
} from "#gen/chainguard/platform/vulnerabilities/v2beta1/advisories_pb.js";
import { breakRule, type FieldViolation, invalidArgument, resourceExhausted } from "../../kernel/errors.js";
import type { AddViolation } from "../../pipeline/resource/paging.js";
import { type FieldRule, isPrintable } from "../../pipeline/resource/rules.js";
import type { AdvisoryEventRow } from "../../store/tables/advisories.js";

/** The largest number of entries in a list of an advisory or an event, and of events of an advisory. */
export const MAX_ENTRIES = 1_000;
/** The longest name, path, version or id, in characters. */
const MAX_TEXT = 512;
/** The largest request that creates, updates or lists advisories, in bytes: it may have events, or values to filter by. */
export const MAX_ADVISORY_REQUEST = 1024 * 1024;
/** The longest sum of the entries of a list, in characters. */
const MAX_LIST = 32 * 1024;
/** The longest sum of the JSON of the events of an advisory, in characters. */
const MAX_EVENTS = 256 * 1024;
/** The longest note, in characters. */
const MAX_NOTE = 16 * 1024;
/** The longest findings, in bytes. */
const MAX_FINDINGS = 64 * 1024;
/** How far the clocks of callers may be ahead, in milliseconds. */
const MAX_AHEAD_MS = 60_000;

const ONE_LINE = `one line of at most ${MAX_TEXT} characters`;

/** The rule for optional names: one line of at most 512 characters. */
export const isLineField: FieldRule = (value, field) =>
  isLine(String(value)) ? undefined : breakRule(field, `must be ${ONE_LINE}`);

/** The rule for required names. */
export const isRequiredLine: FieldRule = (value, field) =>
  value === "" ? breakRule(field, "is required") : isLineField(value, field);

/** The rule for lists of names, such as aliases. */
export const isLines: FieldRule = (value, field) => {
  const lines = value as readonly string[];
  if (lines.length > MAX_ENTRIES) return breakRule(field, `must be at most ${MAX_ENTRIES}`);
  if (!lines.every((line) => line !== "" && isLine(line))) return breakRule(field, `must each be ${ONE_LINE}`);
  const length = lines.reduce((sum, line) => sum + line.length, 0);
  return length > MAX_LIST ? breakRule(field, `must be at most ${MAX_LIST} characters together`) : undefined;
};

/**
 * Makes sure that the events of an advisory are few and short enough, because every list shows all of them.
 *
 * @param events all of them, as stored
 * @throws ApiError RESOURCE_EXHAUSTED for more than 1,000 events, or events of more than 256 KiB.
 */
export function requireEventLimits(events: readonly Pick<AdvisoryEventRow, "data">[]): void {
  if (events.length > MAX_ENTRIES) throw resourceExhausted(`events: an advisory has at most ${MAX_ENTRIES}`);
  const length = events.reduce((sum, { data }) => sum + JSON.stringify(data).length, 0);
  if (length > MAX_EVENTS)
    throw resourceExhausted(`events: those of an advisory have at most ${MAX_EVENTS} characters together`);
}

/**
 * Makes sure that an event of a request obeys the rules.
 *
 * @param event its `createTime` is when it happened; absent stands for now
 * @param nowMs in epoch milliseconds
 * @param at prefix of the field names in errors
 * @throws ApiError INVALID_ARGUMENT naming each field that breaks its rule.
 */
export function requireValidEvent(event: AdvisoryEvent, nowMs: number, at = ""): void {
  const violations: FieldViolation[] = [];
  const addViolation: AddViolation = (field, rule) => violations.push({ field: at + field, rule });
  const { reviewState, createTime, findings, issue = "" } = event;
  if (reviewState === ReviewState.UNSPECIFIED) addViolation("reviewState", "is required");
  else if (ReviewState[reviewState] === undefined) addViolation("reviewState", "must be a state of a review");
  const ms = createTime === undefined ? nowMs : timestampMs(createTime);
  // An event in the future would stay the latest one until then.
  if (ms < 0 || ms > nowMs + MAX_AHEAD_MS) addViolation("createTime", "must be between 1970 and now");
  if (findings.length > MAX_FINDINGS) addViolation("findings", `must be at most ${MAX_FINDINGS} bytes`);
  else if (findings.length > 0 && !isJson(findings)) addViolation("findings", "must be JSON");
  if (!isLine(issue)) addViolation("issue", `must be ${ONE_LINE}`);
  checkOneofs(reflect(AdvisoryEventSchema, event), "", addViolation);
  if (violations.length > 0) throw invalidArgument(...violations);
}

// Every oneof must be set: the type of the event, and the type of a detection.
function checkOneofs(message: ReflectMessage, path: string, addViolation: AddViolation): void {
  for (const oneof of message.oneofs) {
    const field = message.oneofCase(oneof);
    if (field === undefined) addViolation(path || oneof.localName, `must have one of ${formatMembers(oneof)}`);
    else if (field.fieldKind === "message") checkFields(message.get(field), joinPath(path, field), addViolation);
  }
}

function checkFields(message: ReflectMessage, path: string, addViolation: AddViolation): void {
  checkOneofs(message, path, addViolation);
  for (const field of message.fields) {
    const at = joinPath(path, field);
    if (field.fieldKind === "enum") {
      if (field.enum.value[message.get(field)] === undefined) addViolation(at, "must be one of its values");
    } else if (field.fieldKind === "list") {
      const broken = isLines([...message.get(field)], at);
      if (broken) addViolation(at, broken.rule);
    } else if (field.fieldKind === "scalar") {
      const text = String(message.get(field));
      if (field.name !== "note") {
        if (!isLine(text)) addViolation(at, `must be ${ONE_LINE}`);
      } else if (text.length > MAX_NOTE) addViolation(at, `must be at most ${MAX_NOTE} characters`);
      else if (!isText(text)) addViolation(at, "must not contain control characters");
    }
  }
}

function joinPath(path: string, field: DescField): string {
  return path === "" ? field.jsonName : `${path}.${field.jsonName}`;
}

function formatMembers(oneof: DescOneof): string {
  return oneof.fields.map(({ jsonName }) => jsonName).join(", ");
}

function isLine(text: string): boolean {
  return text.length <= MAX_TEXT && isPrintable(text);
}

// Notes may have several lines.
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
