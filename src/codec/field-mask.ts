// Paths of field masks. Callers may write field names in snake_case or camelCase; handlers get the names of the proto.
// Keys of a Struct or a map are not converted, and are in backticks unless they have the form of a name (AIP-161).

import type { DescField, DescMessage, JsonValue } from "@bufbuild/protobuf";
import { isJsonObject } from "../kernel/strict-json.js";
import { findWellKnownName, getFieldsByName, isReplacedWhole } from "./fields.js";

/** The result of {@link findMaskPaths}. */
export interface MaskPaths {
  /** Sorted, as the proto spells them. */
  readonly paths: readonly string[];
  /** The path of an unknown key, as written; undefined when there is none. */
  readonly unknown: string | undefined;
  /**
   * A field of a Struct or Value with too many keys, whose paths are missing in `paths`; undefined when there is none.
   */
  readonly oversized: string | undefined;
}

/** How long all paths into Structs and Values may be together, in characters, because callers choose the keys. */
const MAX_KEYS_LENGTH = 65_536;

/**
 * Finds the paths of the leaves in `json`. Lists, maps, null, empty objects, well-known types and messages that are
 * replaced as a whole are leaves, which are replaced or cleared as a whole. Objects of Struct and Value are walked as messages are.
 *
 * @param excluded paths that the URL sets, so that the body cannot change them
 */
export function findMaskPaths(desc: DescMessage, json: JsonValue, excluded: ReadonlySet<string>): MaskPaths {
  const paths = new Set<string>();
  let unknown: string | undefined;
  let oversized: string | undefined;
  let length = 0;

  const walkKeys = (value: JsonValue, path: string, field: string): void => {
    const keys = isJsonObject(value) ? Object.keys(value) : [];
    length += path.length;
    if (length > MAX_KEYS_LENGTH) oversized ??= field;
    else if (!isJsonObject(value) || keys.length === 0 || keys.some((key) => key.includes("`"))) paths.add(path);
    else for (const key of keys) walkKeys(value[key] ?? null, `${path}.${quoteKey(key)}`, field);
  };

  const walk = (at: DescMessage, value: JsonValue, prefix: string): void => {
    if (!isJsonObject(value)) return;
    for (const [key, member] of Object.entries(value)) {
      const field = getFieldsByName(at).get(key);
      if (field === undefined) {
        unknown ??= prefix + key.slice(0, 100);
        continue;
      }
      const path = prefix + field.name;
      if (excluded.has(path)) continue;
      const nested =
        field.fieldKind === "message" && findWellKnownName(field.message) === undefined && !isReplacedWhole(field);
      if (nested && isJsonObject(member) && Object.keys(member).length > 0) walk(field.message, member, `${path}.`);
      else if (isFreeForm(field)) walkKeys(member, path, path);
      else paths.add(path);
    }
  };
  walk(desc, json, "");
  return { paths: [...paths].sort(), unknown, oversized };
}

const NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;
const PATH = /^[A-Za-z_][A-Za-z0-9_]*(?:\.(?:[A-Za-z_][A-Za-z0-9_]*|`[^`]*`))*$/;
const PART = /`[^`]*`|[^.`]+/g;

/** Splits a mask at its commas, except for those in backticks. */
export function splitMask(text: string): string[] {
  const paths = [""];
  for (const [i, part] of text.split("`").entries()) {
    const [head = "", ...rest] = i % 2 === 0 ? part.split(",") : [part];
    paths.push(`${paths.pop()}${i === 0 ? "" : "`"}${head}`);
    // Not spread into arguments, whose number is limited.
    for (const path of rest) paths.push(path);
  }
  return paths;
}

/**
 * Parses a path of a caller to the names of the proto; undefined if it is malformed.
 *
 * @param resource the message that the path is about, which tells keys from fields and `line1` from `line_1`; without
 * it all names become snake_case
 */
export function parseMaskPath(text: string, resource?: DescMessage): string | undefined {
  const path = text.trim();
  if (path === "*") return path;
  if (!PATH.test(path)) return undefined;
  const parts: string[] = [];
  let at: DescMessage | undefined = resource;
  let isKey = false;
  for (const part of path.match(PART) ?? []) {
    const fields: ReadonlyMap<string, DescField> | undefined = at && getFieldsByName(at);
    const field: DescField | undefined = fields?.get(part) ?? fields?.get(toJsonMaskPath(part));
    parts.push(isKey || part.startsWith("`") ? part : (field?.name ?? toSnakeCase(part)));
    isKey ||= field !== undefined && (field.fieldKind === "map" || isFreeForm(field));
    at = !isKey && field?.fieldKind === "message" ? field.message : undefined;
  }
  return parts.join(".");
}

/** Converts a path of a caller to the camelCase of field masks in JSON. */
export function toJsonMaskPath(text: string): string {
  return text.trim().replace(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());
}

function toSnakeCase(name: string): string {
  return name.replace(/[A-Z]/g, (capital) => `_${capital.toLowerCase()}`);
}

function quoteKey(key: string): string {
  return NAME.test(key) ? key : `\`${key}\``;
}

// Whether a field contains objects whose keys are data.
function isFreeForm(field: DescField): boolean {
  const name = field.fieldKind === "message" ? findWellKnownName(field.message) : undefined;
  return name === "Struct" || name === "Value";
}
