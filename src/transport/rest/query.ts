// Binds query parameters to the fields of a request (google/api/http.proto, "query parameters"; AIP-127).
// URLSearchParams is not used, because it replaces malformed bytes by U+FFFD.
import { type DescField, type DescMessage, type Message, toJson } from "@bufbuild/protobuf";
import { closestMatch } from "leven";
import {
  ensureContainer,
  type Fields,
  findConflictingPath,
  findWellKnownName,
  getField,
  getFieldsByName,
  isSameValue,
  isWrapper,
  setField,
} from "../../codec/fields.js";
import { createKeyReader, createMaskPathReader, createTextReader, type TextReader } from "../../codec/query-value.js";
import { formatMessageRule } from "../../codec/value-rules.js";
import { invalidArgument, invalidRequest } from "../../kernel/errors.js";
import { decodeQueryPart, hasRawUnsafe } from "./request-path.js";

/** How many parameters a query may have: about as many as fit into the headers of a request. */
export const MAX_QUERY_PARAMETERS = 1024;

/** What the query of an HTTP rule may set. */
export interface QueryRules {
  readonly input: DescMessage;
  /** The body: nothing, the whole request (so that the query sets nothing), or one field. */
  readonly body: "none" | "all" | DescField;
  /** The JSON paths of the fields that the path sets. */
  readonly inPath: ReadonlySet<string>;
  /** Whether parameters that name no field are ignored. */
  readonly ignoreUnknown: boolean;
  /** The message that the request's field mask is about, if known. */
  readonly resource?: DescMessage | undefined;
}

/** Sets the fields a query string names, without its question mark, on a request. */
export type QueryBinder = (message: Message, query: string) => void;

interface Target {
  /** The camelCase JSON path. */
  readonly path: string;
  readonly parents: readonly DescField[];
  readonly field: DescField;
  /** Whether the field, or one on the way to it, is a member of a oneof. */
  readonly inOneof: boolean;
  readonly read: TextReader;
  /** The field that has a textual form as a whole, such as a timestamp, if `field` is a part of it. */
  readonly whole: { readonly path: string; readonly desc: DescMessage } | undefined;
  /** For a map: parses a key to the name of a property. */
  readonly readKey: ((text: string, field: string) => string) | undefined;
}

const MAX_KNOWN = 512;
const MAX_PATH_PARTS = 8;

/**
 * Creates the binder of one HTTP rule.
 *
 * The binder throws ApiError INVALID_ARGUMENT naming the parameter when it is unknown, given twice although it is not
 * repeated, not of its type, in conflict with the path, or part of the body.
 */
export function createQueryBinder(rules: QueryRules): QueryBinder {
  // A cache of resolved names, filled on use: recursive messages have infinitely many.
  const known = new Map<string, Target>();

  const targetOf = (name: string): Target | undefined => {
    let target = known.get(name);
    if (target === undefined) {
      target = resolveTarget(rules, name);
      if (target !== undefined && known.size < MAX_KNOWN) known.set(name, target);
    }
    return target;
  };

  const bind = (message: Message, { seen, wholes }: Bound, name: string, text: string): void => {
    const bracket = name.indexOf("[");
    const target = targetOf(bracket < 0 ? name : name.slice(0, bracket));
    const isMap = target?.field.fieldKind === "map";
    if (target === undefined || isMap !== bracket >= 0 || (isMap && !name.endsWith("]"))) {
      if (rules.ignoreUnknown) return;
      throw unknownParameter(rules.input, name);
    }
    const { path, field, whole } = target;
    if (rules.body === "all" || (target.parents[0] ?? field) === rules.body) {
      if (rules.ignoreUnknown) return;
      reject(path, "belongs in the body of this request");
    }
    if (rules.inPath.has(path)) {
      assertAgrees(message, target, text);
      return;
    }
    if (whole !== undefined && rules.inPath.has(whole.path)) reject(whole.path, SET_BY_PATH);
    if (seen.has(whole?.path ?? "") || wholes.has(path)) reject(whole?.path ?? path, "is given twice");
    const conflicting = target.inOneof ? findConflictingPath(message, [...target.parents, field]) : undefined;
    if (conflicting !== undefined) reject(path, `cannot be given together with ${conflicting}`);
    const container = ensureContainer(message, target.parents);
    if (whole !== undefined) wholes.set(whole.path, { ...whole, message: container });
    switch (field.fieldKind) {
      case "list":
        (getField(container, field) as unknown[]).push(target.read(text, path));
        return;
      case "map": {
        const map = getField(container, field) as Fields;
        const key = target.readKey?.(name.slice(bracket + 1, -1), path) ?? "";
        if (key === "__proto__") reject(path, "must not have a key __proto__");
        if (Object.hasOwn(map, key)) reject(path, `has the key ${key} twice`);
        map[key] = target.read(text, path);
        return;
      }
      default:
        if (seen.has(path)) reject(path, "is given twice");
        seen.add(path);
        setField(container, field, target.read(text, path));
    }
  };

  return (message, query) => {
    if (query === "") return;
    if (hasRawUnsafe(query)) {
      throw invalidRequest("query: characters outside printable ASCII must be percent-encoded");
    }
    const bound: Bound = { seen: new Set(), wholes: new Map() };
    let count = 0;
    let start = 0;
    while (start <= query.length) {
      let end = query.indexOf("&", start);
      if (end < 0) end = query.length;
      if (end > start) {
        if (++count > MAX_QUERY_PARAMETERS) {
          throw invalidRequest(`query: at most ${MAX_QUERY_PARAMETERS} parameters are allowed`);
        }
        const equal = query.indexOf("=", start);
        const split = equal < 0 || equal > end ? end : equal;
        const name = decodeQueryPart(query.slice(start, split));
        const text = split === end ? "" : decodeQueryPart(query.slice(split + 1, end));
        if (name === undefined || text === undefined) {
          throw invalidRequest("query: a percent escape is malformed or not UTF-8");
        }
        bind(message, bound, name, text);
      }
      start = end + 1;
    }
    for (const [path, whole] of bound.wholes) if (!isValidWhole(whole)) reject(path, formatMessageRule(whole.desc));
  };
}

/** What the parameters before have set. */
interface Bound {
  /** The paths of single fields. */
  readonly seen: Set<string>;
  /** The messages with a textual form of which parts were set, by path. */
  readonly wholes: Map<string, { readonly desc: DescMessage; readonly message: Message }>;
}

// The parts of a time or a duration may each be in range, and be no time together. Paths were checked when they were read.
function isValidWhole({ desc, message }: { readonly desc: DescMessage; readonly message: Message }): boolean {
  if (findWellKnownName(desc) === "FieldMask") return true;
  try {
    toJson(desc, message);
    return true;
  } catch {
    return false;
  }
}

const SET_BY_PATH = "is set by the path, the query must not say otherwise";

function reject(path: string, rule: string): never {
  throw invalidArgument({ field: path, rule });
}

function unknownParameter(input: DescMessage, name: string): Error {
  const shown = name.slice(0, 100);
  const suggestion = findSuggestion(name, listParameterNames(input, name.includes("_")));
  const hint = suggestion === undefined ? "" : `, did you mean ${suggestion}?`;
  return invalidArgument({ field: shown, rule: `is not a parameter of this method${hint}` });
}

// The query may repeat the value in the path, but not contradict it: otherwise a proxy and this service could decide on
// different values.
function assertAgrees(message: Message, { path, parents, field, read }: Target, text: string): void {
  const container = ensureContainer(message, parents);
  const value = read(text, path);
  const current = getField(container, field);
  if (!isSameValue(field, current, value)) reject(path, SET_BY_PATH);
}

/** Well-known types with a textual form whose fields may be given one by one. */
const HAVE_PARTS: ReadonlySet<string> = new Set(["Timestamp", "Duration", "FieldMask"]);

// Resolves a dotted name; each part may have either spelling. The last one must have a textual form.
function resolveTarget({ input, resource }: QueryRules, name: string): Target | undefined {
  const parts = name.split(".");
  if (parts.length > MAX_PATH_PARTS) return undefined;
  const parents: DescField[] = [];
  let at = input;
  let whole: Target["whole"];
  for (let i = 0; i < parts.length; i++) {
    const field = getFieldsByName(at).get(parts[i] ?? "");
    if (field === undefined) return undefined;
    const read =
      whole !== undefined && findWellKnownName(whole.desc) === "FieldMask"
        ? createMaskPathReader(whole.desc, i === 1 ? resource : undefined)
        : createTextReader(field, i === 0 ? resource : undefined);
    // protobuf-es may store the bare value instead of the wrapper, so its part is the whole.
    const isLast =
      i === parts.length - 1 ||
      (i === parts.length - 2 && parts[i + 1] === "value" && field.fieldKind === "message" && isWrapper(field.message));
    if (isLast) {
      if (read === undefined) return undefined;
      const path = [...parents, field].map((f) => f.jsonName).join(".");
      const readKey = field.fieldKind === "map" ? createKeyReader(field.mapKey) : undefined;
      const inOneof = [...parents, field].some(({ oneof }) => oneof !== undefined);
      return { path, parents, field, inOneof, read, whole, readKey };
    }
    if (field.fieldKind !== "message" || whole !== undefined) return undefined;
    parents.push(field);
    if (read !== undefined) {
      if (!HAVE_PARTS.has(findWellKnownName(field.message) ?? "")) return undefined;
      whole = { path: parents.map((f) => f.jsonName).join("."), desc: field.message };
    }
    at = field.message;
  }
  return undefined;
}

/** The names of all parameters of a request in one of the spellings, at most three levels deep. */
function listParameterNames(input: DescMessage, snakeCase: boolean, prefix = "", depth = 0): string[] {
  return input.fields.flatMap((field) => {
    const name = prefix + (snakeCase ? field.name : field.jsonName);
    if (createTextReader(field) !== undefined) return [name];
    if (field.fieldKind !== "message" || depth >= 2) return [];
    return listParameterNames(field.message, snakeCase, `${name}.`, depth + 1);
  });
}

const MAX_DISTANCE = 3;

/**
 * Finds the one of `names` that a caller who wrote `name` most likely meant: the nearest by edit distance, if it is near
 * enough. Case and underscores are ignored.
 */
function findSuggestion(name: string, names: readonly string[]): string | undefined {
  const byPlainName = new Map(names.map((one) => [normalizeName(one), one]));
  const plainName = normalizeName(name.slice(0, 64));
  const maxDistance = Math.min(MAX_DISTANCE, Math.floor(plainName.length / 3));
  return byPlainName.get(closestMatch(plainName, [...byPlainName.keys()], { maxDistance }) ?? "");
}

function normalizeName(name: string): string {
  return name.toLowerCase().replaceAll("_", "");
}
