// The names that errors have for the fields of a request. Handlers name fields by their paths in JSON; callers get the
// names of their own format: those of the proto, or those of its JSON.
import type { DescField, DescMessage } from "@bufbuild/protobuf";
import { ApiError, describeViolations } from "../kernel/errors.js";

/** The names that a caller uses for fields: `group_uid` of the proto, or `groupUid` of JSON. */
export type FieldSpelling = "proto" | "json";

const SEGMENT = /^([A-Za-z_][A-Za-z0-9_]*)((?:\[\d+\])*)(?:\.|$)/;

/**
 * Spells a path with the names of fields as `spelling` has them. The path leads from the request, or from a message in
 * it, such as the resource of a create request, whose fields errors name without it.
 *
 * @returns undefined when no field of the request has this path
 */
export function spellFieldPath(input: DescMessage, path: string, spelling: FieldSpelling): string | undefined {
  const resources = input.fields.filter(({ fieldKind }) => fieldKind === "message");
  for (const desc of [input, ...resources.map(({ message }) => message as DescMessage)]) {
    const spelled = spellFrom(desc, path, spelling);
    if (spelled !== undefined) return spelled;
  }
  return undefined;
}

function spellFrom(desc: DescMessage, path: string, spelling: FieldSpelling): string | undefined {
  const [matched = "", name, indices = ""] = SEGMENT.exec(path) ?? [];
  const field = desc.fields.find((one) => one.name === name || one.jsonName === name);
  if (field === undefined) return path === name ? spellOneof(desc, name, spelling) : undefined;
  const own = nameOf(field, spelling) + indices;
  if (!matched.endsWith(".")) return own;
  const rest = path.slice(matched.length);
  // What follows a map is a key, which the caller has spelled.
  if (field.fieldKind === "map") return `${own}.${rest}`;
  const inner = field.message && spellFrom(field.message, rest, spelling);
  return inner === undefined ? undefined : `${own}.${inner}`;
}

// A path may name a oneof, for example where none of its members is set.
function spellOneof(desc: DescMessage, name: string, spelling: FieldSpelling): string | undefined {
  const oneof = desc.oneofs.find((one) => one.name === name || one.localName === name);
  return spelling === "proto" ? oneof?.name : oneof?.localName;
}

function nameOf({ name, jsonName }: DescField, spelling: FieldSpelling): string {
  return spelling === "proto" ? name : jsonName;
}

/**
 * Converts an error so that its BadRequest names the fields of the request as the caller does. Names of no field, such
 * as `body`, stay as they are, and so do all texts, which are the same on every protocol.
 */
export function withFieldSpelling(error: unknown, input: DescMessage, spelling: FieldSpelling): unknown {
  if (!(error instanceof ApiError) || error.violations.length === 0) return error;
  const { code, reason, message, cause, rejection, violations } = error;
  const spelled = describeViolations(violations, (path) => spellFieldPath(input, path, spelling) ?? path);
  const details = error.details.map((detail) => (detail.desc === spelled.desc ? spelled : detail));
  return new ApiError(code, reason, message, details, cause, rejection, violations);
}
