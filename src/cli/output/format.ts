// Formats the responses of commands as `--output` says. JSON and YAML have the members of REST.
import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { Document, isScalar, Scalar, visit } from "yaml";
import type { Format } from "../remote/flags.js";
import { createTable, formatFields, type TableColumn } from "./table.js";
import type { Terminal } from "./terminal.js";
import { escapeControls, escapeLines } from "./terminal.js";

/** Formats a list page by page. */
export interface ListFormatter {
  /** Formats one more page. */
  page(rows: readonly JsonObject[]): string;
  /** Formats the end of the list. `rest` is the response without its rows. */
  end(rest: JsonObject): string;
}

export interface ListColumn extends TableColumn {
  /** The path of the field of a row that it shows, joined by dots; none when it shows more than one. */
  readonly path?: string;
  /** The cell of a row; empty for none. */
  readonly cell: (row: JsonObject) => string;
}

/**
 * Creates the formatter of a list.
 *
 * @param key the name of the rows in the response, such as `groups`
 */
export function createListFormatter(
  format: Format,
  key: string,
  columns: readonly ListColumn[],
  terminal: Terminal,
): ListFormatter {
  switch (format) {
    case "table":
    case "wide": {
      const table = createTable(columns, format === "wide" ? { ...terminal, width: undefined } : terminal);
      return {
        page: (rows) => joinLines(table.lines(rows.map((row) => columns.map(({ cell }) => cell(row))))),
        end: () => "",
      };
    }
    case "name":
      return { page: (rows) => joinLines(rows.flatMap((row) => formatName(columns, row))), end: () => "" };
    case "csv":
      return createCsvList(columns);
    case "jsonl":
      return { page: (rows) => joinLines(rows.map(formatJsonLine)), end: () => "" };
    case "json":
      return createJsonList(key);
    case "yaml":
      return createYamlList(key);
  }
}

/** Formats one response. `rows` are the lines of its table, as pairs of field and value. */
export function formatResponse(
  format: Format,
  response: JsonObject,
  rows: () => readonly (readonly [field: string, value: string])[],
  terminal: Terminal,
): string {
  const titles = ["FIELD", "VALUE"];
  switch (format) {
    case "table":
    case "wide":
      return joinLines(formatFields(titles, rows(), format === "wide" ? { ...terminal, width: undefined } : terminal));
    case "name":
      return joinLines(findUid(response));
    case "csv":
      return [titles, ...rows()].map(formatCsvLine).join("");
    case "jsonl":
      return `${formatJsonLine(response)}\n`;
    case "json":
      return `${escapeLines(JSON.stringify(response, null, 2))}\n`;
    case "yaml":
      return formatYaml(response);
  }
}

/** The spelling of a row that commands accept: its uid, in the last column, or else what the first column has. */
function formatName(columns: readonly ListColumn[], row: JsonObject): string[] {
  const last = columns.at(-1);
  const column = last?.kind === "uid" ? last : columns[0];
  const name = escapeControls(column?.cell(row) ?? "");
  return name === "" ? [] : [name];
}

/** Of a response that has no columns: its uid, under the names that messages give it. */
function findUid(response: JsonObject): string[] {
  const uid = [response.uid, response.id, response.subject].find((one) => typeof one === "string" && one !== "");
  return typeof uid === "string" ? [escapeControls(uid)] : [];
}

// RFC 4180. What is printed is what the table has, whole, so that a row is a line.
function createCsvList(columns: readonly ListColumn[]): ListFormatter {
  let hasHeader = false;
  const takeHeader = () => {
    if (hasHeader) return "";
    hasHeader = true;
    return formatCsvLine(columns.map(({ title }) => title));
  };
  return {
    page: (rows) => takeHeader() + rows.map((row) => formatCsvLine(columns.map(({ cell }) => cell(row)))).join(""),
    end: takeHeader,
  };
}

/** What makes a spreadsheet compute a cell (https://owasp.org/www-community/attacks/CSV_Injection). */
const FORMULA = /^[=+\-@]/;

function formatCsvLine(cells: readonly string[]): string {
  const fields = cells.map((cell) => {
    const text = `${FORMULA.test(cell) ? "'" : ""}${escapeControls(cell)}`;
    return /[",]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  });
  return `${fields.join(",")}\r\n`;
}

// The text is the same as for one long page, but only one chunk is in memory.
function createJsonList(key: string): ListFormatter {
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

function createYamlList(key: string): ListFormatter {
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

/** Formats `value` as YAML 1.2 with a line end and without control characters. */
export function formatYaml(value: JsonValue): string {
  const document = new Document(value, { aliasDuplicateObjects: false });
  // YAML has escapes in double quotes only.
  visit(document, {
    Scalar(_, node) {
      if (isScalar(node) && typeof node.value === "string" && escapeControls(node.value) !== node.value) {
        node.type = Scalar.QUOTE_DOUBLE;
      }
    },
  });
  return escapeLines(document.toString({ lineWidth: 0, doubleQuotedMinMultiLineLength: Number.MAX_SAFE_INTEGER }));
}
