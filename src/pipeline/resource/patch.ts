// Turns the resource in a request into the values that are stored or changed (AIP-134, AIP-161, AIP-203).

import {
  clone,
  create,
  type DescField,
  type DescMessage,
  isFieldSet,
  type Message,
  type MessageShape,
} from "@bufbuild/protobuf";
import { reflect } from "@bufbuild/protobuf/reflect";
import type { FieldMask } from "@bufbuild/protobuf/wkt";
import { getField, isReplacedWhole } from "../../codec/fields.js";
import { type FieldViolation, invalidArgument } from "../../kernel/errors.js";
import type { FieldName, FieldValues, MutableFields } from "./define.js";
import { type FixedPath, requireStored, resolveFixed } from "./fixed-fields.js";
import { isZeroAt } from "./located-values.js";

/**
 * Builds the values of a new resource: every mutable field, validated.
 *
 * @param at prefix of the field names in errors
 * @throws ApiError INVALID_ARGUMENT naming each field that breaks its rule, PERMISSION_DENIED naming each that
 * only the operator sets.
 */
export function buildValues<D extends DescMessage, M extends FieldName<D>>(
  resource: MutableFields<D, M>,
  body: MessageShape<D> | undefined,
  at = "",
): FieldValues<D, M> {
  const source = body ?? create(resource.message);
  const fixed = findFixedFields(resource).filter((field) => field.immutable !== true);
  requireStored(fixed, source, [create(resource.message)], { at });
  const values = validate(resource, source, mutableFields(resource), at);
  return values as FieldValues<D, M>;
}

/**
 * Builds the values to change. Without a mask (absent or empty) these are the fields populated in `body`;
 * over REST the gateway has made a mask of the keys present. With a mask only its fields count:
 * a field absent from the body is cleared. A path into a message changes that field and keeps the others as they are
 * in `before`. Output-only fields are ignored. A fixed field that the request names must have its value of `before`;
 * zero names it only where a path of the mask ends in the field.
 *
 * @throws ApiError INVALID_ARGUMENT for a path that names no field, or a value that breaks its rule, PERMISSION_DENIED
 * for the value of a field that only the operator sets.
 */
export function buildPatch<D extends DescMessage, M extends FieldName<D>>(
  resource: MutableFields<D, M>,
  body: MessageShape<D> | undefined,
  mask: FieldMask | undefined,
  before: MessageShape<D>,
): Partial<FieldValues<D, M>> {
  const source = body ?? create(resource.message);
  const after = clone(resource.message, before);
  const paths = selectPaths(resource, source, mask?.paths ?? []);
  for (const path of paths) copy(after, source, path);
  const fixed = findFixedFields(resource);
  for (const { path } of fixed) if (!endsIn(path, paths, mask) && isZeroAt(after, path)) copy(after, before, path);
  requireStored(fixed, after, [before], { zero: true });
  const changed = mutableFields(resource).filter((field) => paths.some(([head]) => head === field));
  return validate(resource, after, changed) as Partial<FieldValues<D, M>>;
}

type Path = readonly DescField[];

function selectPaths<D extends DescMessage, M extends FieldName<D>>(
  resource: MutableFields<D, M>,
  body: MessageShape<D>,
  paths: readonly string[],
): readonly Path[] {
  const heads = findFixedFields(resource).flatMap(({ path }) => path.slice(0, 1));
  const named = [...new Set([...mutableFields(resource), ...heads])];
  if (paths.length === 0) return named.filter((field) => isFieldSet(body, field)).map((field) => [field]);
  if (paths.includes("*")) {
    if (paths.length > 1) throw invalidMask("* must stand alone");
    return named.map((field) => [field]);
  }
  // Every path copies its field, so each is taken once: a mask may name thousands of keys of one map.
  const distinct = new Map<string, Path>();
  for (const path of paths) {
    const fields = parsePath(resource, path);
    if (fields[0] && named.includes(fields[0])) distinct.set(fields.map(({ name }) => name).join("."), fields);
  }
  return [...distinct.values()];
}

// Whether a mask other than `*` names the field itself, and not just a message around it.
function endsIn(field: Path, paths: readonly Path[], mask: FieldMask | undefined): boolean {
  if (!mask?.paths.length || mask.paths.includes("*")) return false;
  return paths.some((path) => field.every((one, i) => path[i] === one));
}

function parsePath<D extends DescMessage, M extends FieldName<D>>(resource: MutableFields<D, M>, path: string): Path {
  const fields: DescField[] = [];
  let message: DescMessage | undefined = resource.message;
  for (const segment of path.split(".")) {
    const last = fields.at(-1);
    // A path into a map ends in a key. The key does not matter, because a map changes as a whole.
    if (last?.fieldKind === "map") break;
    const field: DescField | undefined = message?.fields.find(
      ({ name, jsonName }) => name === segment || jsonName === segment,
    );
    if (field === undefined)
      throw invalidMask(`${path.slice(0, 100)} is not a field of ${withArticle(resource.displayName)}`);
    if (last && isReplacedWhole(last))
      throw invalidMask(`${path.slice(0, 100)} is within ${last.name}, which is replaced as a whole`);
    fields.push(field);
    message = field.fieldKind === "message" ? field.message : undefined;
  }
  return fields;
}

// Copies the field at the end of `path` and creates the messages above it. A field that is absent is cleared.
function copy(to: Message, from: Message, [head, ...rest]: Path): void {
  if (head === undefined) return;
  const [target, source] = [reflect(head.parent, to), reflect(head.parent, from)];
  if (rest.length > 0 && head.fieldKind === "message") {
    const inner = target.isSet(head) ? target.get(head).message : create(head.message);
    copy(inner, source.isSet(head) ? source.get(head).message : create(head.message), rest);
    target.set(head, reflect(head.message, inner));
  } else if (source.isSet(head)) {
    target.set(head, source.get(head));
  } else if (target.isSet(head)) {
    target.clear(head);
  }
}

function validate<D extends DescMessage, M extends FieldName<D>>(
  resource: MutableFields<D, M>,
  source: MessageShape<D>,
  fields: readonly DescField[],
  at = "",
): Record<string, unknown> {
  const values: Record<string, unknown> = {};
  const violations: FieldViolation[] = [];
  for (const field of fields) {
    const value = getField(source, field);
    const broken = resource.mutable[field.localName as M](value, field.jsonName);
    if (broken === undefined) values[field.localName] = value;
    else violations.push({ ...broken, field: at + field.jsonName });
  }
  if (violations.length > 0) throw invalidArgument(...violations);
  return values;
}

function mutableFields<D extends DescMessage, M extends FieldName<D>>(
  resource: MutableFields<D, M>,
): readonly DescField[] {
  return resource.message.fields.filter(({ localName }) => Object.hasOwn(resource.mutable, localName));
}

function findFixedFields<D extends DescMessage, M extends FieldName<D>>({
  message,
  fixed,
}: MutableFields<D, M>): readonly FixedPath[] {
  return fixed ? resolveFixed(message, fixed) : [];
}

function withArticle(name: string): string {
  return `${/^[aeiou]/.test(name) ? "an" : "a"} ${name}`;
}

function invalidMask(rule: string) {
  return invalidArgument({ field: "updateMask", subject: "updateMask:", rule });
}
