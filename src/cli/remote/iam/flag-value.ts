// What flags say, as values of fields. Texts are read as those of query strings
// are, and refused with the same words; people may besides write durations as
// they say them, and enums by their short names.
import { createRegistry, type DescField, fromJson, type JsonValue } from "@bufbuild/protobuf";
import { violationIn } from "../../../codec/body-check.js";
import { wellKnownName } from "../../../codec/fields.js";
import { createKeyReader, createTextReader, type TextReader } from "../../../codec/query-value.js";
import { invalidArgument } from "../../../kernel/errors.js";
import { enumNamesRule, enumValueOf } from "./enum-names.js";
import { parsedText } from "./resource-file.js";

const DURATION = /^(?=.)(?:(\d{1,9})d)?(?:(\d{1,9})h)?(?:(\d{1,9})m)?(?:(\d{1,12})(\.\d{1,9})?s)?$/;

/**
 * The value of a field, in the form protobuf-es keeps it in.
 *
 * @param given the texts of its flag; a lone empty one stands for an empty list or map
 * @param flag the flag, for errors
 * @throws ApiError INVALID_ARGUMENT naming the flag and the rule.
 */
export function flagValue(field: DescField, given: readonly string[], flag: string): unknown {
  const read = readerOf(field);
  const texts = given.length === 1 && given[0] === "" ? [] : given;
  switch (field.fieldKind) {
    case "list":
      // Names have no commas in them; what else a list may hold, such as a pattern, may well.
      return (field.enum ? texts.flatMap((text) => text.split(",")) : texts).map((text) => read(text, flag));
    case "map":
      return entriesOf(field, texts, flag, read);
    default:
      return read(given.at(-1) ?? "", flag);
  }
}

function entriesOf(field: DescField & { fieldKind: "map" }, texts: readonly string[], flag: string, read: TextReader) {
  const readKey = createKeyReader(field.mapKey);
  const entries: Record<string, unknown> = Object.create(null);
  for (const text of texts) {
    const equals = text.indexOf("=");
    if (equals < 1) refuse(flag, "must be a name, an equals sign and a value");
    const key = readKey(text.slice(0, equals), flag);
    if (key in entries) refuse(flag, `must not give ${key} twice`);
    entries[key] = read(text.slice(equals + 1), flag);
  }
  return { ...entries };
}

function readerOf(field: DescField): TextReader {
  const { enum: names, message } = field;
  if (names !== undefined) {
    return (text, flag) => enumValueOf(names, text)?.number ?? refuse(flag, enumNamesRule(names, text));
  }
  const read = createTextReader(field);
  if (message !== undefined && wellKnownName(message) === "Duration") {
    return (text, flag) => read?.(secondsIn(text) ?? refuse(flag, "must be a duration such as 90s, 24h or 7d"), flag);
  }
  return read ?? ((text, flag) => messageIn(field, parsedText(text, flag), flag));
}

function secondsIn(text: string): string | undefined {
  const match = DURATION.exec(text);
  if (match === null) return undefined;
  const [, days = "0", hours = "0", minutes = "0", seconds = "0", fraction = ""] = match;
  return `${((Number(days) * 24 + Number(hours)) * 60 + Number(minutes)) * 60 + Number(seconds)}${fraction}s`;
}

// A message that is an element has no flags of its own: it is written as JSON or YAML.
function messageIn(field: DescField, json: JsonValue, flag: string): unknown {
  if (field.message === undefined) throw new TypeError(`no flag can set ${field}`);
  const registry = createRegistry();
  try {
    return fromJson(field.message, json, { registry });
  } catch {
    return refuse(flag, `is not understood: ${violationIn(field.message, json, "value", registry).description}`);
  }
}

function refuse(flag: string, rule: string): never {
  throw invalidArgument({ field: flag, description: `${flag} ${rule}` });
}
