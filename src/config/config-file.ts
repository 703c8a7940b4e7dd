// The JSON file of settings that `--config` or `ARBOR_CONFIG` names.
import { readFileSync } from "node:fs";
import { ApiError } from "../kernel/errors.js";
import { describeReadError } from "../kernel/files.js";
import { isJsonObject, parseStrictJson } from "../kernel/strict-json.js";

/** A key for editors, which load the schema from there. */
export const SCHEMA_KEY = "$schema";

/** The values of a file, by key. */
export type FileValues = ReadonlyMap<string, unknown>;

/**
 * Reads a file of settings.
 *
 * @param name what named the file: `--config` or `ARBOR_CONFIG`
 * @param problems gets a line for everything that is wrong, which the values returned are without
 */
export function readConfigFile(file: string, name: string, problems: string[]): FileValues {
  const values = new Map<string, unknown>();
  const content = parseFile(file, name, problems);
  if (content === undefined) return values;
  if (!isJsonObject(content)) {
    problems.push(`${name}: ${file}: must hold a JSON object`);
    return values;
  }
  for (const [key, value] of Object.entries(content)) {
    if (key !== SCHEMA_KEY) values.set(key, value);
    else if (typeof value !== "string") problems.push(`${name}: ${file}: ${key} must be a string`);
  }
  return values;
}

function parseFile(file: string, name: string, problems: string[]): unknown {
  let text: string;
  try {
    text = readFileSync(file, "utf8");
  } catch (error) {
    problems.push(`${name}: ${describeReadError(file, error)}`);
    return undefined;
  }
  try {
    return parseStrictJson(text, "the file", (index) => formatPosition(text, index));
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    problems.push(`${name}: ${file}: ${describeViolation(error)}`);
    return undefined;
  }
}

// The rule alone: the field is named within it.
function describeViolation({ message }: ApiError): string {
  return message.replace(/^Invalid argument: .*?: /, "");
}

/** Formats a position of a text as editors show it, such as `line 3, column 14`. */
function formatPosition(text: string, index: number): string {
  const before = text.slice(0, index);
  const line = before.split("\n").length;
  return `at line ${line}, column ${index - before.lastIndexOf("\n")}`;
}
