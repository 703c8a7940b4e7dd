// What commands answer with, in the format asked for. JSON and YAML are what
// REST answers, so that a script may change from one to the other.
import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { printable } from "../printable.js";
import type { Format } from "./formats.js";
import { printableLines } from "./lines.js";
import { type TableColumn, type Terminal, tableOf } from "./table.js";
import { yamlText } from "./yaml.js";

/** A list whose pages come one after another. */
export interface ListText {
  /** The text of one more page. */
  page(rows: readonly JsonObject[]): string;
  /** The text behind the last page. `rest` is the answer without its rows. */
  end(rest: JsonObject): string;
}

/** How the rows of a list show in a table. */
export interface ListColumn extends TableColumn {
  /** The cell of a row; empty for none. */
  readonly cell: (row: JsonObject) => string;
}

/**
 * Begins a list.
 *
 * @param key the name of the rows in the answer, such as `groups`
 */
export function listText(format: Format, key: string, columns: readonly ListColumn[], terminal: Terminal): ListText {
  switch (format) {
    case "table": {
      const table = tableOf(columns, terminal);
      return {
        page: (rows) => linesText(table.lines(rows.map((row) => columns.map(({ cell }) => cell(row))))),
        end: () => "",
      };
    }
    case "jsonl":
      return { page: (rows) => linesText(rows.map(jsonLine)), end: () => "" };
    case "json":
      return jsonList(key);
    case "yaml":
      return yamlList(key);
  }
}

/** One answer as text. `rows` are the lines of its table, as pairs of field and value. */
export function answerText(
  format: Format,
  answer: JsonObject,
  rows: () => readonly (readonly [field: string, value: string])[],
  terminal: Terminal,
): string {
  switch (format) {
    case "table":
      return linesText(
        tableOf([{ title: "FIELD" }, { title: "VALUE" }], { ...terminal, width: undefined }).lines(rows()),
      );
    case "jsonl":
      return `${jsonLine(answer)}\n`;
    case "json":
      return `${printableLines(JSON.stringify(answer, null, 2))}\n`;
    case "yaml":
      return yamlText(answer);
  }
}

// Both write what they would for one long page, without having it all at once.
function jsonList(key: string): ListText {
  let begun = false;
  const begin = () => (begun ? "," : `{\n  ${JSON.stringify(key)}: [`);
  return {
    page(rows) {
      let text = "";
      for (const row of rows) {
        text += `${begin()}\n    ${indented(row, 4)}`;
        begun = true;
      }
      return text;
    },
    end(rest) {
      const members = Object.entries(rest).map(
        ([name, value]) => `,\n  ${JSON.stringify(name)}: ${indented(value, 2)}`,
      );
      return `${begun ? "\n  ]" : `${begin()}]`}${members.join("")}\n}\n`;
    },
  };
}

function yamlList(key: string): ListText {
  let begun = false;
  return {
    page(rows) {
      if (rows.length === 0) return "";
      const head = begun ? "" : `${key}:\n`;
      begun = true;
      return head + yamlText([...rows]);
    },
    end: (rest) => (begun ? "" : `${key}: []\n`) + (Object.keys(rest).length === 0 ? "" : yamlText(rest)),
  };
}

function indented(value: JsonValue, spaces: number): string {
  return printableLines(JSON.stringify(value, null, 2).replaceAll("\n", `\n${" ".repeat(spaces)}`));
}

function jsonLine(value: JsonValue): string {
  return printable(JSON.stringify(value));
}

function linesText(lines: readonly string[]): string {
  return lines.map((line) => `${line}\n`).join("");
}
