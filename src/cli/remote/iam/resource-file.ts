// Resources from files, in JSON or YAML, with the field names of REST. Errors give the position and never the content,
// because files contain secrets.
import { readFile } from "node:fs/promises";
import { text } from "node:stream/consumers";
import { createRegistry, type DescMessage, type JsonValue, type Message } from "@bufbuild/protobuf";
import { LineCounter, parseDocument } from "yaml";
import { isObject } from "../../../codec/fields.js";
import { JsonReadError } from "../../../codec/json-read-value.js";
import { readMessage } from "../../../codec/json-reader.js";
import { invalidFlag } from "../../errors.js";

/** A resource from a file. */
export interface FileResource {
  readonly message: Message;
  /** The JSON of the file. It tells an empty field from an absent one. */
  readonly json: JsonValue;
}

/**
 * Reads the text of a file.
 *
 * @param file its path, or `-` for standard input
 * @param flag the flag with the path
 * @throws CommandError INVALID_ARGUMENT when it cannot be read
 */
export async function readText(file: string, flag: string): Promise<string> {
  try {
    return await (file === "-" ? text(process.stdin) : readFile(file, "utf8"));
  } catch (error) {
    const { code = "unknown" } = error as NodeJS.ErrnoException;
    throw invalidFlag(flag, `${file} cannot be read (${code})`);
  }
}

/**
 * Reads a resource.
 *
 * @throws CommandError INVALID_ARGUMENT with the first field that `desc` lacks, or whose value is wrong
 */
export async function readResource(file: string, desc: DescMessage, flag: string): Promise<FileResource> {
  const json = parseYaml(await readText(file, flag), flag);
  if (!isObject(json)) throw invalidFlag(flag, "the file must hold one object, the resource");
  try {
    return { message: readMessage(desc, json, "", { registry: createRegistry(), ignoreUnknown: false }), json };
  } catch (error) {
    throw error instanceof JsonReadError ? invalidFlag(flag, error.message) : error;
  }
}

/**
 * Parses YAML 1.2, of which JSON is a part.
 *
 * @throws CommandError INVALID_ARGUMENT with line and column of the first fault
 */
export function parseYaml(source: string, flag: string): JsonValue {
  const lineCounter = new LineCounter();
  const document = parseDocument(source, { lineCounter, prettyErrors: false, resolveKnownTags: false });
  const [fault] = [...document.errors, ...document.warnings];
  if (fault !== undefined) {
    const { line, col } = lineCounter.linePos(fault.pos[0]);
    throw invalidFlag(flag, `no JSON or YAML at line ${line}, column ${col} (${fault.code})`);
  }
  try {
    return document.toJS() as JsonValue;
  } catch {
    // Nested aliases, which would expand without a limit.
    throw invalidFlag(flag, "no JSON or YAML that can be written out");
  }
}
