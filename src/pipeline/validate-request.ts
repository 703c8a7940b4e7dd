// Validates every request before its handler runs: its REQUIRED fields are set, and no text holds U+0000.

import { type DescField, type DescMessage, isFieldSet, type Message, ScalarType } from "@bufbuild/protobuf";
import { isEmptyValid, isRequired } from "../codec/fields.js";
import { type FieldViolation, invalidArgument } from "../kernel/errors.js";

type Check = (request: Message) => void;

const checks = new WeakMap<DescMessage, Check>();

/**
 * Checks the request's own REQUIRED fields (google.api.field_behavior). What a resource inside the
 * request requires depends on the operation and is checked by the resource kit.
 *
 * A required resource that is absent is checked by the kit as well: the error of a create with an empty body names the
 * resource's field, not the body.
 *
 * @throws ApiError INVALID_ARGUMENT naming each missing field.
 */
export function assertRequiredFields(desc: DescMessage, request: Message): void {
  let check = checks.get(desc);
  if (check === undefined) {
    check = compile(desc);
    checks.set(desc, check);
  }
  check(request);
}

function compile(message: DescMessage): Check {
  const required = message.fields.filter(
    (field) => isRequired(field) && field.fieldKind !== "message" && !isEmptyValid(field),
  );
  return (request) => {
    let violations: FieldViolation[] | undefined;
    for (const field of required) {
      if (isFieldSet(request, field)) continue;
      violations ??= [];
      violations.push({ field: field.jsonName, rule: "is required" });
    }
    if (violations) throw invalidArgument(...violations);
  };
}

/** Finds the first text with U+0000 in a message, by the path of its field in JSON. */
type Find = (message: Message) => string | undefined;
type FindIn = (value: unknown) => string | undefined;

const finders = new WeakMap<DescMessage, Find>();

/**
 * Rejects U+0000 in any text of a request. REST rejects it while it parses; requests in binary must meet the same rule,
 * because PostgreSQL cannot store it.
 *
 * @throws ApiError INVALID_ARGUMENT naming the first such field.
 */
export function assertNoNul(desc: DescMessage, message: Message): void {
  const field = finderOf(desc)(message);
  if (field !== undefined) throw invalidArgument({ field, rule: "must not hold U+0000" });
}

function finderOf(desc: DescMessage): Find {
  const known = finders.get(desc);
  if (known !== undefined) return known;
  let members: readonly FindIn[] = [];
  const find: Find = (message) => {
    for (const member of members) {
      const field = member(message);
      if (field !== undefined) return field;
    }
    return undefined;
  };
  // Set before its fields are visited, because they may hold messages of the same type.
  finders.set(desc, find);
  members = desc.fields.flatMap((field) => memberFinder(field) ?? []);
  return find;
}

function memberFinder(field: DescField): FindIn | undefined {
  const found = valueFinder(field);
  if (found === undefined) return undefined;
  const { localName, jsonName, oneof } = field;
  const below = (value: unknown) => {
    const path = value === undefined ? undefined : found(value);
    return path === undefined ? undefined : `${jsonName}${path}`;
  };
  if (oneof === undefined) return (message) => below((message as Record<string, unknown>)[localName]);
  return (message) => {
    const chosen = (message as Record<string, { case?: string; value?: unknown }>)[oneof.localName];
    return chosen?.case === localName ? below(chosen.value) : undefined;
  };
}

function valueFinder(field: DescField): FindIn | undefined {
  const one = singleFinder(field);
  if (field.fieldKind === "list") return one && ((list) => findInList(list as readonly unknown[], one));
  if (field.fieldKind !== "map") return one;
  if (one === undefined && field.mapKey !== ScalarType.STRING) return undefined;
  return (map) => findInMap(map as Readonly<Record<string, unknown>>, one);
}

function singleFinder({ scalar, message }: DescField): FindIn | undefined {
  if (scalar === ScalarType.STRING) return (text) => ((text as string).includes("\0") ? "" : undefined);
  // The well-known types have forms of their own in JSON. No request has one with text.
  if (message === undefined || message.file.name.startsWith("google/protobuf/")) return undefined;
  // Resolved at the first use, because messages may hold each other.
  let find: Find | undefined;
  return (value) => {
    find ??= finderOf(message);
    const path = find(value as Message);
    return path === undefined ? undefined : `.${path}`;
  };
}

function findInList(list: readonly unknown[], one: FindIn): string | undefined {
  for (const [index, value] of list.entries()) {
    const path = one(value);
    if (path !== undefined) return `[${index}]${path}`;
  }
  return undefined;
}

// Errors about a key name the map, because the key may be unprintable.
function findInMap(map: Readonly<Record<string, unknown>>, one: FindIn | undefined): string | undefined {
  for (const [key, value] of Object.entries(map)) {
    if (key.includes("\0")) return "";
    const path = one?.(value);
    if (path !== undefined) return `.${key}${path}`;
  }
  return undefined;
}
