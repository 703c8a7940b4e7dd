// The answers of commands in the format of `--output`. JSON and YAML have the members that REST answers.
import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { Document, isScalar, Scalar, visit } from "yaml";
import type { Format } from "../remote/flags.js";
import { createTable, type TableColumn } from "./table.js";
import type { Terminal } from "./terminal.js";
import { escapeControls, escapeLines } from "./terminal.js";

/** The text of a list, page by page. */
export interface ListFormatter {
  /** The text of one more page. */
  page(rows: readonly JsonObject[]): string;
  /** The text after the last page. `rest` is the answer without its rows. */
  end(rest: JsonObject): string;
}

/** A column of the table of a list. */
export interface ListColumn extends TableColumn {
  /** The cell of a row; empty for none. */
  readonly cell: (row: JsonObject) => string;
}

/**
 * Creates the formatter of a list.
 *
 * @param key the name of the rows in the answer, such as `groups`
 */
export function createListFormatter(
  format: Format,
  key: string,
  columns: readonly ListColumn[],
  terminal: Terminal,
): ListFormatter {
  switch (format) {
    case "table": {
      const table = createTable(columns, terminal);
      return {
        page: (rows) => joinLines(table.lines(rows.map((row) => columns.map(({ cell }) => cell(row))))),
        end: () => "",
      };
    }
    case "jsonl":
      return { page: (rows) => joinLines(rows.map(formatJsonLine)), end: () => "" };
    case "json":
      return jsonList(key);
    case "yaml":
      return yamlList(key);
  }
}

/** Formats one answer. `rows` are the lines of its table, as pairs of field and value. */
export function formatAnswer(
  format: Format,
  answer: JsonObject,
  rows: () => readonly (readonly [field: string, value: string])[],
  terminal: Terminal,
): string {
  switch (format) {
    case "table":
      return joinLines(
        createTable([{ title: "FIELD" }, { title: "VALUE" }], { ...terminal, width: undefined }).lines(rows()),
      );
    case "jsonl":
      return `${formatJsonLine(answer)}\n`;
    case "json":
      return `${escapeLines(JSON.stringify(answer, null, 2))}\n`;
    case "yaml":
      return formatYaml(answer);
  }
}

// Both write the same text as for one long page, and hold one chunk in memory.
function jsonList(key: string): ListFormatter {
  let hasRows = false;
  const separator = () => (hasRows ? "," : `{\n  ${JSON.stringify(key)}: [`);
  return {
    page(rows) {
      let text = "";
      for (const row of rows) {
        text += `${separator()}\n    ${indentJson(row, 4)}`;
        hasRows = true;
      }
      return text;
    },
    end(rest) {
      const members = Object.entries(rest).map(
        ([name, value]) => `,\n  ${JSON.stringify(name)}: ${indentJson(value, 2)}`,
      );
      return `${hasRows ? "\n  ]" : `${separator()}]`}${members.join("")}\n}\n`;
    },
  };
}

function yamlList(key: string): ListFormatter {
  let hasRows = false;
  return {
    page(rows) {
      if (rows.length === 0) return "";
      const head = hasRows ? "" : `${key}:\n`;
      hasRows = true;
      return head + formatYaml([...rows]);
    },
    end: (rest) => (hasRows ? "" : `${key}: []\n`) + (Object.keys(rest).length === 0 ? "" : formatYaml(rest)),
  };
}

function indentJson(value: JsonValue, spaces: number): string {
  return escapeLines(JSON.stringify(value, null, 2).replaceAll("\n", `\n${" ".repeat(spaces)}`));
}

function formatJsonLine(value: JsonValue): string {
  return escapeControls(JSON.stringify(value));
}

function joinLines(lines: readonly string[]): string {
  return lines.map((line) => `${line}\n`).join("");
}

/** Formats `value` as YAML 1.2 that no terminal acts upon, with a line end. */
export function formatYaml(value: JsonValue): string {
  const document = new Document(value, { aliasDuplicateObjects: false });
  // YAML knows escapes in double quotes only.
  visit(document, {
    Scalar(_, node) {
      if (isScalar(node) && typeof node.value === "string" && escapeControls(node.value) !== node.value) {
        node.type = Scalar.QUOTE_DOUBLE;
      }
    },
  });
  return escapeLines(document.toString({ lineWidth: 0, doubleQuotedMinMultiLineLength: Number.MAX_SAFE_INTEGER }));
}
