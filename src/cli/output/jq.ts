// `--jq`: applies an expression of jq to the JSON that a command prints. This module is loaded with the flag alone, because
// jq is a megabyte of WebAssembly.
import { loadJq } from "jq-wasm";
import { Code, CommandError, invalidFlag } from "../errors.js";
import { escapeControls, escapeLines, type TextFilter } from "./terminal.js";

/** How much JSON an expression gets at once, in characters: jq takes about ten times as much memory. */
const MAX_LENGTH = 32 * 1024 * 1024;

/** How many members of the JSON an error names. */
const MAX_NAMES = 10;

/**
 * Creates the filter of an expression.
 *
 * @param isPerText whether the expression gets each text as it is written, which has whole documents; otherwise it gets the
 * one document that all texts are together
 * @throws CommandError INVALID_ARGUMENT for what is no expression, before a command does anything
 */
export async function createJqFilter(
  expression: string,
  isPerText: boolean,
  print: (text: string) => Promise<void>,
): Promise<TextFilter> {
  const jq = await loadJq();
  const run = (json: string, program: string) => {
    try {
      return jq.raw(json, program, ["-c", "--"]);
    } catch (error) {
      // It aborts where it cannot get more memory.
      throw new CommandError(Code.Unknown, "--jq: jq was aborted: the expression takes too much memory", error);
    }
  };
  // In a branch that is not taken it is compiled alone; the text of the error is that of the expression itself.
  if (run("null", `if . then (${expression}\n) else empty end`).exitCode !== 0) {
    const { exitCode, stderr } = run("null", expression);
    if (exitCode !== 0) throw buildError(stderr);
  }
  const apply = async (json: string): Promise<void> => {
    const { stdout, stderr, exitCode } = run(json, expression);
    if (stdout !== "") await print(stdout.trimEnd().split("\n").map(formatResult).join(""));
    if (exitCode !== 0) throw buildError(stderr, describeMembers(json));
    if (stderr !== "") process.stderr.write(`${escapeLines(stderr.trimEnd())}\n`);
  };
  let texts: string[] = [];
  let length = 0;
  return {
    async write(json) {
      if (isPerText) return json === "" ? undefined : apply(json);
      length += json.length;
      if (length > MAX_LENGTH) {
        texts = [];
        const rule = "gets at most 32 MiB of JSON at once: filter the list, or add -o jsonl to get row by row";
        throw invalidFlag("--jq", rule);
      }
      texts.push(json);
    },
    async end() {
      const json = texts.join("");
      texts = [];
      if (json !== "") await apply(json);
    },
  };
}

/** Formats a result: a string as it is, anything else as JSON on a line. Line ends and tabs of strings are kept, as of @tsv. */
function formatResult(json: string): string {
  if (!json.startsWith('"')) return `${escapeControls(json)}\n`;
  const text = JSON.parse(json) as string;
  return `${text.replace(/[^\n\t]+/g, escapeControls)}\n`;
}

// The first line has the error and its position; the others show the expression.
function buildError(stderr: string, hint = ""): CommandError {
  const [line = ""] = stderr.split("\n");
  const text = line.replace(/^jq: error(?: \(at [^)]*\))?: /, "").replace(/:$/, "");
  return invalidFlag("--jq", `${text === "" ? "has ended with an error" : text}${hint}`);
}

/** Says what the JSON has, for an expression that expects something else. */
function describeMembers(json: string): string {
  try {
    const names = Object.keys(JSON.parse(json) as object).slice(0, MAX_NAMES);
    return names.length === 0 ? "" : `; the JSON is an object with ${names.join(", ")}`;
  } catch {
    return "";
  }
}
