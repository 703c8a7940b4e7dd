// The field mask of a partial update whose caller gave none: the fields that
// are present in the JSON (spec section 4, "Partial update rules"). Only here
// can an empty string be told from an absent one.
import type { DescMessage, JsonValue } from "@bufbuild/protobuf";
import { isObject } from "./body-check.js";
import { fieldsByName, wellKnownName } from "./fields.js";

/**
 * The paths of the leaves present in `json`, sorted, as the proto spells them. Lists, maps,
 * well-known types, null and empty objects are leaves: they are replaced whole, or cleared.
 *
 * @param excluded paths that the URL sets and that a body can thus not change.
 */
export function maskPathsOf(desc: DescMessage, json: JsonValue, excluded: ReadonlySet<string>): string[] {
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
