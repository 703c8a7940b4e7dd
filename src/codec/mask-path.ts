// Paths of field masks. Both spellings of a field name are accepted from
// callers (architecture, section 6 "Updates"); handlers see the proto's.
import type { DescField, DescMessage } from "@bufbuild/protobuf";
import { fieldsByName } from "./fields.js";

const PATH = /^[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*$/;

/** A path as written by a caller, trimmed and in snake_case; undefined if it is none. */
export function maskPathOf(text: string): string | undefined {
  const path = text.trim();
  if (path === "*") return path;
  return PATH.test(path) ? path.replace(/[A-Z]/g, (capital) => `_${capital.toLowerCase()}`) : undefined;
}

/** A path as written by a caller in the camelCase that JSON demands of a field mask. */
export function jsonMaskPathOf(text: string): string {
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
    const field: DescField | undefined = fields?.get(part) ?? fields?.get(jsonMaskPathOf(part));
    parts.push(field?.name ?? part);
    at = field?.fieldKind === "message" ? field.message : undefined;
  }
  return parts.join(".");
}
