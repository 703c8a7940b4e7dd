import { isUtf8 } from "node:buffer";
import { type JsonObject, type JsonValue, parseStrictJson } from "../../kernel/strict-json.js";

/**
 * The object that `bytes` hold as JSON in UTF-8, or undefined when they hold anything else or an
 * object that readers could understand differently, such as one with a name given twice. Neither it
 * nor what is in it has a prototype.
 */
export function jsonObjectIn(bytes: Uint8Array): Readonly<JsonObject> | undefined {
  if (!isUtf8(bytes)) return undefined;
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("utf8");
  let value: JsonValue;
  try {
    value = parseStrictJson(text, "json").value;
  } catch {
    return undefined;
  }
  return typeof value === "object" && value !== null && !Array.isArray(value) ? value : undefined;
}
