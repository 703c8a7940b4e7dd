// Whole resources from files, in JSON or YAML, with the names that REST uses.
// Errors tell where, and never what was there: files hold secrets.
import { readFile } from "node:fs/promises";
import { text } from "node:stream/consumers";
import { createRegistry, type DescMessage, fromJson, type JsonValue, type Message } from "@bufbuild/protobuf";
import { LineCounter, parseDocument } from "yaml";
import { isObject, unsafeIntegerIn, violationIn } from "../../../codec/body-check.js";
import { invalidArgument } from "../../../kernel/errors.js";

/** A resource as a file has it. */
export interface FileResource {
  readonly message: Message;
  /** What it was made of, which tells an empty field from one that is not there. */
  readonly json: JsonValue;
}

/**
 * Reads a file whole.
 *
 * @param file its path, or `-` for standard input
 * @param flag the flag that names it
 * @throws ApiError INVALID_ARGUMENT when it cannot be read
 */
export async function fileText(file: string, flag: string): Promise<string> {
  try {
    return await (file === "-" ? text(process.stdin) : readFile(file, "utf8"));
  } catch (error) {
    const { code = "unknown" } = error as NodeJS.ErrnoException;
    throw refused(flag, `${file} cannot be read (${code})`);
  }
}

/**
 * Reads a resource.
 *
 * @throws ApiError INVALID_ARGUMENT naming the first field that `desc` has not, or not so.
 */
export async function resourceIn(file: string, desc: DescMessage, flag: string): Promise<FileResource> {
  const json = parsedText(await fileText(file, flag), flag);
  if (!isObject(json)) throw refused(flag, "the file must hold one object, the resource");
  const unsafe = unsafeIntegerIn(desc, json, "");
  if (unsafe !== undefined) throw refused(flag, `${unsafe} must be a string of digits, as it is beyond 2^53`);
  const registry = createRegistry();
  try {
    return { message: fromJson(desc, json, { registry }), json };
  } catch {
    throw refused(flag, violationIn(desc, json, "", registry).description);
  }
}

/**
 * The value that a text in YAML 1.2, and so also in JSON, stands for.
 *
 * @throws ApiError INVALID_ARGUMENT telling line and column of what is wrong
 */
export function parsedText(source: string, flag: string): JsonValue {
  const lineCounter = new LineCounter();
  const document = parseDocument(source, { lineCounter, prettyErrors: false, resolveKnownTags: false });
  const [fault] = [...document.errors, ...document.warnings];
  if (fault !== undefined) {
    const { line, col } = lineCounter.linePos(fault.pos[0]);
    throw refused(flag, `no JSON or YAML at line ${line}, column ${col} (${fault.code})`);
  }
  try {
    return document.toJS() as JsonValue;
  } catch {
    // Aliases that would grow without measure.
    throw refused(flag, "no JSON or YAML that can be written out");
  }
}

function refused(flag: string, rule: string): Error {
  return invalidArgument({ field: flag, description: rule });
}
