// Fields that requests may name although callers do not choose their values. A field of a resource is one of three:
//
//   mutable      callers choose its value
//   output-only  the service sets it, and what a request says is ignored (AIP-203)
//   fixed        a request may repeat its value, because clients send back what they have read; any other value is an
//                error, so that no value of a request gets lost without one
//
// Who sets a fixed field decides its error: the operator (`setByOperator`), the service (`setByService`), or the request
// that creates the resource (`immutable`). What a named value is compared with depends on the request:
//
//   version 2, creation   `buildValues`: with an empty resource, so only zero passes. Immutable fields are not compared.
//   version 2, update     `buildPatch`: with the row before. The mask, or the keys in the body, say what is named.
//   version 1             `requireCreated` and `requireUpdated`: with the response, because version 1 has no masks and its
//                         messages have other fields. The error undoes the unit of work.
//
// Zero counts as absent wherever a message cannot tell the two apart. For example, an update of version 2 with
// `{"verified": true}` passes for a verified group and fails for others with PERMISSION_DENIED; `{"verified": false}`
// names the field only with a mask that ends in it.
import type { DescField, DescMessage, Message, MessageShape } from "@bufbuild/protobuf";
import { invalidArgument, notPermittedField } from "../../kernel/errors.js";
import { findValues, isSame, isZero } from "./located-values.js";

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
