// Paths of field masks. Callers may write field names in snake_case or camelCase;
// handlers get the names of the proto.
import type { DescField, DescMessage, JsonValue } from "@bufbuild/protobuf";
import { fieldsByName, isObject, wellKnownName } from "./fields.js";

/**
 * The paths of the leaves present in `json`, sorted, as the proto spells them. Lists, maps,
 * well-known types, null and empty objects are leaves: they are replaced whole, or cleared.
 *
 * @param excluded paths that the URL sets and that a body can thus not change.
 */
export function findMaskPaths(desc: DescMessage, json: JsonValue, excluded: ReadonlySet<string>): string[] {
  const paths = new Set<string>();
  const walk = (at: DescMessage, value: JsonValue, prefix: string): void => {
    if (!isObject(value)) return;
    for (const [key, member] of Object.entries(value)) {
      const field = fieldsByName(at).get(key);
      if (field === undefined) continue;
      const path = prefix + field.name;
      if (excluded.has(path)) continue;
      const nested = field.fieldKind === "message" && wellKnownName(field.message) === undefined;
      if (nested && isObject(member) && Object.keys(member).length > 0) walk(field.message, member, `${path}.`);
      else paths.add(path);
    }
  };
  walk(desc, json, "");
  return [...paths].sort();
}

const PATH = /^[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*$/;

/** A path as written by a caller, trimmed and in snake_case; undefined if it is none. */
export function parseMaskPath(text: string): string | undefined {
  const path = text.trim();
  if (path === "*") return path;
  return PATH.test(path) ? path.replace(/[A-Z]/g, (capital) => `_${capital.toLowerCase()}`) : undefined;
}

/** A path as written by a caller in the camelCase that JSON demands of a field mask. */
export function toJsonMaskPath(text: string): string {
  return text.trim().replace(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());
}

/**
 * `path` with each name as the proto has it, where the messages below `desc` have such a field; for
 * names that the case of letters does not tell, such as `line1` for `line_1`.
 */
export function protoMaskPath(desc: DescMessage, path: string): string {
  const parts: string[] = [];
  let at: DescMessage | undefined = desc;
  for (const part of path.split(".")) {
    const fields: ReadonlyMap<string, DescField> | undefined = at && fieldsByName(at);
    const field: DescField | undefined = fields?.get(part) ?? fields?.get(toJsonMaskPath(part));
    parts.push(field?.name ?? part);
    at = field?.fieldKind === "message" ? field.message : undefined;
  }
  return parts.join(".");
}
