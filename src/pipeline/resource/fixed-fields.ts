// Fields that requests may name although callers do not choose their values (AIP-203 calls the fields that are
// ignored instead output-only). A value that differs from the stored one is rejected, so that no value of a request
// gets lost without an error. Zero counts as absent wherever a message cannot tell the two apart.
import {
  clone,
  type DescField,
  type DescMessage,
  equals,
  isMessage,
  type Message,
  type MessageShape,
} from "@bufbuild/protobuf";
import { reflect } from "@bufbuild/protobuf/reflect";
import { TimestampSchema } from "@bufbuild/protobuf/wkt";
import { FieldBehavior } from "#gen/google/api/field_behavior_pb.js";
import { getField, hasBehavior } from "../../codec/fields.js";
import { invalidArgument, notPermittedField } from "../../kernel/errors.js";

/** A field whose value callers do not choose. */
export interface FixedField {
  /** Who sets the field instead, and how: what follows the name of the field in the error. */
  readonly rule: string;
  /** Only the operator sets the field: another value is PERMISSION_DENIED and not INVALID_ARGUMENT. */
  readonly operator?: true;
  /** A request that creates the resource chooses the value, and no request changes it. */
  readonly immutable?: true;
}

/** Fixed fields by their paths of local names, such as `syncConfig.expiration`. A path may lead through lists. */
export type FixedFields = Readonly<Record<string, FixedField>>;

/** Declares a field that only the operator sets, with this command. */
export function setByOperator(command: string): FixedField {
  return { operator: true, rule: `is set by the operator alone, with \`${command}\`` };
}

/** Declares a field that only the service sets. `how` is the rest of the sentence, such as a reason. */
export function setByService(how = ""): FixedField {
  return { rule: `is set by the service alone${how && `: ${how}`}` };
}

/** Declares a field that nobody changes after the creation. `instead` is what to do in place of a change. */
export function immutable(instead = ""): FixedField {
  return { immutable: true, rule: `cannot change${instead && `: ${instead}`}` };
}

/** Fixed fields of a message outside of version 2, which are compared with the response. */
export interface FixedView<D extends DescMessage> {
  readonly message: D;
  readonly fixed: FixedFields;
}

/** Declares the fixed fields of a message that a request of version 1 has and its response shows. */
export function defineFixedFields<D extends DescMessage>(message: D, fixed: FixedFields): FixedView<D> {
  return { message, fixed };
}

/**
 * Makes sure that a creation has stored what the request names, and returns the response. To be called in the unit of
 * work of the creation, which an error undoes.
 *
 * @param sent the resource of the request
 * @param created the same resource in the response
 * @param at prefix of the field names in errors
 * @throws ApiError PERMISSION_DENIED for fields of the operator, otherwise INVALID_ARGUMENT, naming each field.
 */
export function requireCreated<D extends DescMessage>(
  { message, fixed }: FixedView<D>,
  sent: MessageShape<D> | undefined,
  created: MessageShape<D>,
  at = "",
): MessageShape<D> {
  const fields = resolveFixed(message, fixed).filter((one) => one.immutable !== true);
  if (sent) requireStored(fields, sent, [created], { at });
  return created;
}

/** As {@link requireCreated}, for a request that updates the resource and names all its fields. */
export function requireUpdated<D extends DescMessage>(
  { message, fixed }: FixedView<D>,
  sent: MessageShape<D>,
  updated: MessageShape<D>,
): MessageShape<D> {
  requireStored(resolveFixed(message, fixed), sent, [updated]);
  return updated;
}

/** A fixed field and its path. */
export interface FixedPath extends FixedField {
  readonly path: readonly DescField[];
}

const resolved = new WeakMap<FixedFields, readonly FixedPath[]>();

/**
 * The fixed fields of a message with their paths.
 *
 * @throws TypeError for a path that names no field.
 */
export function resolveFixed(message: DescMessage, fixed: FixedFields): readonly FixedPath[] {
  let paths = resolved.get(fixed);
  if (paths === undefined) {
    paths = Object.entries(fixed).map(([text, field]) => ({ ...field, path: resolvePath(message, text) }));
    resolved.set(fixed, paths);
  }
  return paths;
}

function resolvePath(message: DescMessage, text: string): readonly DescField[] {
  let at: DescMessage | undefined = message;
  return text.split(".").map((name) => {
    const field: DescField | undefined = at?.fields.find(({ localName }) => localName === name);
    if (field === undefined) throw new TypeError(`${text} is not a field of ${message}`);
    at = field.message;
    return field;
  });
}

/** How a request names values. */
export interface Naming {
  /** Whether zero is a value that the request names, and not an absent one. */
  readonly zero?: boolean;
  /** The prefix of the fields in errors. */
  readonly at?: string;
}

/**
 * Makes sure that each value of `sent` at one of the paths is a value of one of the `stored` messages there.
 *
 * @throws ApiError as {@link requireCreated}
 */
export function requireStored(
  fields: readonly FixedPath[],
  sent: Message,
  stored: readonly Message[],
  { zero = false, at: prefix = "" }: Naming = {},
): void {
  const broken = fields.flatMap(({ path, rule, operator }) => {
    const kept = stored.flatMap((one) => findValues(one, path));
    const named = findValues(sent, path, prefix).filter(({ value }) => zero || !isZero(value));
    const differing = named.filter((one) => !kept.some((other) => isSame(one, other)));
    return differing.map(({ at }) => ({
      operator,
      violation: { field: at, subject: at.slice(at.lastIndexOf(".") + 1), rule },
    }));
  });
  const denied = broken.filter(({ operator }) => operator);
  if (denied.length > 0) throw notPermittedField(...denied.map(({ violation }) => violation));
  if (broken.length > 0) throw invalidArgument(...broken.map(({ violation }) => violation));
}

/** A value in a message: an element of a list and an entry of a map are values of their own. */
interface LocatedValue {
  readonly field: DescField;
  /** The path in JSON. */
  readonly at: string;
  /** The key of an entry of a map. */
  readonly key?: string;
  readonly value: unknown;
}

function findValues(message: Message, [field, ...rest]: readonly DescField[], prefix = ""): readonly LocatedValue[] {
  const value = field && getField(message, field);
  if (field === undefined || value === undefined || value === null) return [];
  const at = prefix + field.jsonName;
  const placed: readonly LocatedValue[] =
    field.fieldKind === "list"
      ? (value as readonly unknown[]).map((one, i) => ({ field, at: `${at}[${i}]`, value: one }))
      : field.fieldKind === "map"
        ? Object.entries(value).map(([key, one]) => ({ field, at: `${at}.${key}`, key, value: one }))
        : [{ field, at, value }];
  return rest.length === 0 ? placed : placed.flatMap((one) => findValues(one.value as Message, rest, `${one.at}.`));
}

/** Whether `message` holds the field at the end of `path`, and its value is zero. */
export function isZeroAt(message: Message, path: readonly DescField[]): boolean {
  const values = findValues(message, path);
  return values.length > 0 && values.every(({ value }) => isZero(value));
}

/** The zero of `time.Time` in Go, whose clients send it for a time that is not set: the start of the year 1. */
const GO_ZERO_SECONDS = -62_135_596_800n;

function isZero(value: unknown): boolean {
  if (isMessage(value, TimestampSchema)) return value.nanos === 0 && [0n, GO_ZERO_SECONDS].includes(value.seconds);
  return value instanceof Uint8Array ? value.length === 0 : [0, 0n, "", false].some((zero) => zero === value);
}

function isSame(a: LocatedValue, b: LocatedValue): boolean {
  if (a.key !== b.key) return false;
  const { message } = a.field;
  if (message === undefined) return a.value === b.value;
  return isSameMessage(message, a.value as Message, b.value as Message);
}

/** Whether two messages are equal in all but output-only fields, times to the second. */
export function isSameMessage(message: DescMessage, a: Message, b: Message): boolean {
  return equals(message, normalize(message, a), normalize(message, b));
}

// Clients keep times as text of whole seconds, and cannot send back what the service has set meanwhile.
function normalize(message: DescMessage, value: Message): Message {
  const copy = clone(message, value);
  truncate(message, copy);
  return copy;
}

function truncate(message: DescMessage, value: Message): void {
  if (isMessage(value, TimestampSchema)) value.nanos = 0;
  for (const field of message.fields) {
    if (hasBehavior(field, FieldBehavior.OUTPUT_ONLY)) reflect(message, value).clear(field);
    const inner = field.message && getField(value, field);
    if (field.message === undefined || inner === undefined || inner === null) continue;
    const all = field.fieldKind === "message" ? [inner] : Object.values(inner);
    for (const one of all) truncate(field.message, one as Message);
  }
}
