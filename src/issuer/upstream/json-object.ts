import { isUtf8 } from "node:buffer";
import { type JsonObject, type JsonValue, parseStrictJson } from "../../kernel/strict-json.js";

/**
 * Whether `text` holds at most `max` values if it is JSON. Each value but
 * the first follows a comma or is in an object or list; their signs are counted wherever they stand, so
 * this costs far less than parsing and errs on the side of more values.
 */
export function hasFewValues(text: string, max: number): boolean {
  let left = max;
  for (let i = 0; i < text.length && left > 0; i++) {
    const code = text.charCodeAt(i);
    if (code === COMMA || code === BRACKET || code === BRACE) left--;
  }
  return left > 0;
}

const [COMMA, BRACKET, BRACE] = [0x2c, 0x5b, 0x7b];

/**
 * The object that `bytes` hold as JSON in UTF-8, or undefined when they hold anything else or an
 * object that readers could understand differently, such as one with a name given twice. Neither it
 * nor what is in it has a prototype.
 *
 * @param maxValues objects with more values, nested ones included, count as anything else
 */
export function jsonObjectIn(
  bytes: Uint8Array,
  maxValues = Number.POSITIVE_INFINITY,
): Readonly<JsonObject> | undefined {
  if (!isUtf8(bytes)) return undefined;
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("utf8");
  if (!hasFewValues(text, maxValues)) return undefined;
  let value: JsonValue;
  try {
    value = parseStrictJson(text, "json").value;
  } catch {
    return undefined;
  }
  return typeof value === "object" && value !== null && !Array.isArray(value) ? value : undefined;
}
