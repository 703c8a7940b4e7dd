// Builds a request from the flags of a command and the file of `--file`; flags take precedence. Values are parsed as in
// query strings, and durations may also be written as `7d`, and enum values by their short names.

import {
  create,
  createRegistry,
  type DescField,
  type DescMessage,
  type JsonObject,
  type JsonValue,
  type Message,
} from "@bufbuild/protobuf";
import { LineCounter, parseDocument } from "yaml";
import { findMaskPaths } from "../../../codec/field-mask.js";
import {
  ensureContainer,
  findWellKnownName,
  getFieldsByName,
  isReplacedWhole,
  setField,
} from "../../../codec/fields.js";
import { JsonReadError } from "../../../codec/json-read-value.js";
import { readMessage } from "../../../codec/json-reader.js";
import { createKeyReader, createTextReader, type TextReader } from "../../../codec/query-value.js";
import { ApiError, formatViolation } from "../../../kernel/errors.js";
import { isJsonObject } from "../../../kernel/strict-json.js";
import { invalidFlag } from "../../errors.js";
import { readFlagFileOrInput } from "../../flag-file.js";
import {
  type FieldArgument,
  type FieldFlag,
  findCapability,
  findEnumValue,
  formatEnumRule,
  isRepeated,
  isSwitch,
} from "./field-flags.js";

const DURATION = /^(?=.)(?:(\d{1,9})d)?(?:(\d{1,9})h)?(?:(\d{1,9})m)?(?:(\d{1,12})(\.\d{1,9})?s)?$/;

/** The values of the flags, by their names in commander. */
export type FlagValues = Readonly<Record<string, unknown>>;

/** A request, and the fields of the resource that flags and file set. */
export interface BuiltRequest {
  readonly request: Message;
  /** Their paths for a field mask of the resource. */
  readonly paths: readonly string[];
}

/**
 * Builds the request of a method.
 *
 * @param resource the field that `--file` sets; the whole request without one
 * @throws CommandError INVALID_ARGUMENT for the first wrong flag
 */
export async function buildRequest(
  input: DescField["parent"],
  flags: readonly FieldFlag[],
  given: FlagValues,
  resource: DescField | undefined,
): Promise<BuiltRequest> {
  let request = create(input);
  const used = flags.filter((flag) => isGiven(flag, given[flag.attributeName()]));
  assertCompatible(used);
  assertOneStdin([given.file, ...used.filter(({ fromFile }) => fromFile).map((flag) => given[flag.attributeName()])]);
  const paths = new Set<string>();
  if (resource === undefined && typeof given.file === "string") {
    request = (await readResource(given.file, input, "--file", "request")).message;
  }
  if (resource?.message !== undefined && typeof given.file === "string") {
    const { message, json } = await readResource(given.file, resource.message, "--file");
    setField(request, resource, message);
    for (const path of findMaskPaths(resource.message, json, new Set(["uid"])).paths) paths.add(path);
  }
  for (const flag of used) {
    setField(ensureContainer(request, flag.path.slice(0, -1)), flag.field, await readValue(flag, given));
    if (flag.path[0] === resource) paths.add(toMaskPath(flag));
  }
  return { request, paths: [...paths] };
}

/**
 * Sets the fields of arguments.
 *
 * @throws CommandError INVALID_ARGUMENT for the first wrong argument
 */
export function setArguments(request: Message, args: readonly FieldArgument[], values: readonly string[]): void {
  for (const [i, { field }] of args.entries()) {
    setField(request, field, parseFlag(field, [values[i] ?? ""], field.name.replaceAll("_", "-")));
  }
}

function toMaskPath({ path }: FieldFlag): string {
  const whole = path.findIndex(isReplacedWhole);
  return path
    .slice(1, whole < 0 ? undefined : whole + 1)
    .map(({ name }) => name)
    .join(".");
}

// A boolean flag and its `--no-` form have the same name; the value tells which one was given.
function isGiven(flag: FieldFlag, value: unknown): boolean {
  return isSwitch(flag.field) ? value === !flag.negate : value !== undefined;
}

async function readValue(flag: FieldFlag, given: FlagValues): Promise<unknown> {
  const value = given[flag.attributeName()];
  if (isSwitch(flag.field)) return value;
  const name = flag.long ?? flag.flags;
  if (!flag.fromFile)
    return parseFlag(flag.field, isRepeated(flag.field) ? (value as string[]) : [String(value)], name);
  // The line end at the end of the file is not part of the value.
  const content = (await readFlagFileOrInput(name, String(value))).replace(/[\r\n]+$/, "");
  if (content === "") throw invalidFlag(name, "must name a file that is not empty");
  return parseFlag(flag.field, [content], name);
}

// The fields of a oneof exclude each other: the last flag must not override the others silently.
function assertCompatible(flags: readonly FieldFlag[]): void {
  for (const [i, flag] of flags.entries()) {
    const conflicting = flags.slice(0, i).find((other) => isExclusive(other, flag));
    if (conflicting === undefined) continue;
    throw invalidFlag(`${flag.long}`, `cannot be combined with ${conflicting.long}`);
  }
}

function isExclusive({ path: a }: FieldFlag, { path: b }: FieldFlag): boolean {
  const fork = a.findIndex((field, i) => field !== b[i]);
  const [left, right] = [a[fork], b[fork]];
  return left?.oneof !== undefined && left.oneof === right?.oneof;
}

function assertOneStdin(files: readonly unknown[]): void {
  if (files.filter((file) => file === "-").length < 2) return;
  throw invalidFlag("--file", "only one file can be -, which is standard input");
}

/**
 * Parses the texts of a flag to the value of its field in protobuf-es.
 *
 * @param given the texts; one empty text is an empty list or map
 * @param flag the name of the flag in errors
 * @throws CommandError INVALID_ARGUMENT with the flag and the rule
 */
function parseFlag(field: DescField, given: readonly string[], flag: string): unknown {
  const read = createReader(field);
  const texts = given.length === 1 && given[0] === "" ? [] : given;
  switch (field.fieldKind) {
    case "list":
      // Only names of enum values may be separated by commas; other values, such as patterns, may contain them.
      return (field.enum ? texts.flatMap((text) => text.split(",")) : texts).map((text) => read(text, flag));
    case "map":
      return parseEntries(field, texts, flag, read);
    default:
      return read(given.at(-1) ?? "", flag);
  }
}

function parseEntries(
  field: DescField & { fieldKind: "map" },
  texts: readonly string[],
  flag: string,
  read: TextReader,
) {
  const readKey = ofFlag(createKeyReader(field.mapKey));
  const entries: Record<string, unknown> = Object.create(null);
  for (const text of texts) {
    const equals = text.indexOf("=");
    if (equals < 1) rejectFlag(flag, "must be a name, an equals sign and a value");
    const key = readKey(text.slice(0, equals), flag);
    if (key in entries) rejectFlag(flag, `must not give ${key} twice`);
    entries[key] = read(text.slice(equals + 1), flag);
  }
  return { ...entries };
}

function createReader(field: DescField): TextReader {
  const { enum: names, message } = field;
  if (names !== undefined) {
    return (text, flag) => findEnumValue(names, text)?.number ?? rejectFlag(flag, formatEnumRule(names, text));
  }
  const parse = createTextReader(field);
  const read = parse && ofFlag(parse);
  if (message !== undefined && findWellKnownName(message) === "Duration") {
    return (text, flag) =>
      read?.(parseDuration(text) ?? rejectFlag(flag, "must be a duration such as 90s, 24h or 7d"), flag);
  }
  return read ?? ((text, flag) => parseMessage(field, parseYaml(text, flag), flag));
}

/** Makes the errors of a reader of queries those of flags. */
function ofFlag<T>(read: (text: string, flag: string) => T): (text: string, flag: string) => T {
  return (text, flag) => {
    try {
      return read(text, flag);
    } catch (error) {
      const [violation] = error instanceof ApiError ? error.violations : [];
      throw violation === undefined ? error : invalidFlag(flag, formatViolation(violation));
    }
  };
}

function parseDuration(text: string): string | undefined {
  const match = DURATION.exec(text);
  if (match === null) return undefined;
  const [, days = "0", hours = "0", minutes = "0", seconds = "0", fraction = ""] = match;
  return `${((Number(days) * 24 + Number(hours)) * 60 + Number(minutes)) * 60 + Number(seconds)}${fraction}s`;
}

// A message in a list is given as JSON or YAML, because its fields have no flags.
function parseMessage(field: DescField, json: JsonValue, flag: string): unknown {
  if (field.message === undefined) throw new TypeError(`no flag can set ${field}`);
  try {
    const value = expandNames(field.message, json);
    return readMessage(field.message, value, "value", { registry: createRegistry(), ignoreUnknown: false });
  } catch (error) {
    if (!(error instanceof JsonReadError)) throw error;
    return rejectFlag(flag, `is not understood: ${error.message}`);
  }
}

function rejectFlag(flag: string, rule: string): never {
  throw invalidFlag(flag, rule);
}

// Files contain resources in JSON or YAML, with the field names of REST. Errors have the position and never the
// content, because files may contain secrets.

/** A resource from a file. */
interface FileResource {
  readonly message: Message;
  /** The JSON of the file, in which an empty field differs from an absent one. */
  readonly json: JsonValue;
}

/**
 * Reads a resource.
 *
 * @throws CommandError INVALID_ARGUMENT with the first field that is unknown or has a wrong value
 */
async function readResource(file: string, desc: DescMessage, flag: string, what = "resource"): Promise<FileResource> {
  const json = parseYaml(await readFlagFileOrInput(flag, file), flag);
  if (!isJsonObject(json)) throw invalidFlag(flag, `the file must hold one object, the ${what}`);
  try {
    const value = expandNames(desc, json);
    return { message: readMessage(desc, value, "", { registry: createRegistry(), ignoreUnknown: false }), json };
  } catch (error) {
    throw error instanceof JsonReadError ? invalidFlag(flag, error.message) : error;
  }
}

/** The fields of texts that hold capabilities, which the API knows by their dotted names. */
const CAPABILITY_TEXTS = /^(?:actions|cap|capabilities)$/;

/** Replaces the names of enum values and capabilities, as flags and tables have them, by those that the API knows. */
function expandNames(desc: DescMessage, json: JsonValue): JsonValue {
  if (!isJsonObject(json)) return json;
  const fields = getFieldsByName(desc);
  const entries = Object.entries(json as JsonObject).map(([name, value]): [string, JsonValue] => {
    const field = fields.get(name);
    if (field === undefined) return [name, value];
    if (Array.isArray(value)) return [name, value.map((one) => expandName(field, one))];
    if (field.fieldKind !== "map" || !isJsonObject(value)) return [name, expandName(field, value)];
    const values = Object.entries(value as JsonObject);
    return [name, Object.fromEntries(values.map(([key, one]) => [key, expandName(field, one)]))];
  });
  return Object.fromEntries(entries);
}

function expandName(field: DescField, value: JsonValue): JsonValue {
  const { enum: names, message } = field;
  if (message !== undefined) return findWellKnownName(message) === undefined ? expandNames(message, value) : value;
  if (typeof value !== "string") return value;
  if (names !== undefined) return findEnumValue(names, value)?.name ?? value;
  return CAPABILITY_TEXTS.test(field.name) ? (findCapability(value) ?? value) : value;
}

/**
 * Parses YAML 1.2, a superset of JSON.
 *
 * @throws CommandError INVALID_ARGUMENT with line and column of the first fault
 */
function parseYaml(source: string, flag: string): JsonValue {
  const lineCounter = new LineCounter();
  const document = parseDocument(source, { lineCounter, prettyErrors: false, resolveKnownTags: false });
  const [fault] = [...document.errors, ...document.warnings];
  if (fault !== undefined) {
    const { line, col } = lineCounter.linePos(fault.pos[0]);
    throw invalidFlag(flag, `not JSON or YAML at line ${line}, column ${col} (${fault.code})`);
  }
  try {
    return document.toJS() as JsonValue;
  } catch {
    // Nested aliases, which could expand without a limit.
    throw invalidFlag(flag, "no JSON or YAML that can be written out");
  }
}
