// The columns of lists: those of a resource, those of `-o wide`, and those of `--columns`.
import type { DescField, DescMessage, JsonObject, JsonValue } from "@bufbuild/protobuf";
import { findWellKnownName } from "../../../codec/fields.js";
import { invalidFlag } from "../../errors.js";
import type { ListColumn } from "../../output/format.js";
import type { ColumnKind } from "../../output/table.js";
import { type Format, hasColumns } from "../flags.js";

/** How deep in messages the fields are that columns show. */
const MAX_DEPTH = 3;

/** The column of a field of a row. */
export interface FieldColumn extends ListColumn {
  readonly path: string;
}

/**
 * Creates a column of a list.
 *
 * @param path the path of its value in a row, joined by dots
 * @param kind what it has; by the name of the field unless given
 */
export function createColumn(title: string, path: string, kind = findColumnKind(path)): FieldColumn {
  const names = path.split(".");
  const cell: ListColumn["cell"] = (row) => formatCell(names.reduce<JsonValue | undefined>(getMember, row));
  return { title, path, ...(kind && { kind }), cell };
}

function findColumnKind(path: string): ColumnKind | undefined {
  if (/(?:time|timestamp|[a-z]At)$/i.test(path)) return "time";
  if (/(?:^|[a-z.])uidp?$/i.test(path)) return "uid";
  return /description$/i.test(path) ? "prose" : undefined;
}

/** Adds a column before the uid, which is the last one. */
export function addColumn(columns: readonly ListColumn[], ...added: readonly ListColumn[]): ListColumn[] {
  const end = columns.at(-1)?.kind === "uid" ? -1 : columns.length;
  return [...columns.slice(0, end), ...added, ...columns.slice(end)];
}

function getMember(value: JsonValue | undefined, name: string): JsonValue | undefined {
  return (value as JsonObject | undefined)?.[name];
}

function formatCell(value: JsonValue | undefined): string {
  if (value === undefined || value === null) return "";
  if (Array.isArray(value)) return value.map(formatCell).join(",");
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

/** The cell of a column that names the members which a row has. */
export function present(...members: readonly string[]): ListColumn["cell"] {
  return (row) => {
    const set = members.filter((member) => row[member] !== undefined);
    return set.map((member) => member.replace(/[A-Z]/g, (capital) => `-${capital.toLowerCase()}`)).join(", ");
  };
}

/** The cell of a column with the number of elements in a list. */
export function countOf(field: string): ListColumn["cell"] {
  return ({ [field]: list }) => String(Array.isArray(list) ? list.length : 0);
}

/** What a list shows. */
export interface ColumnFlags {
  readonly output: Format;
  /** `--columns`. */
  readonly columns?: string;
}

/**
 * Selects the columns of a list.
 *
 * @param row the message of a row; undefined for rows that are none of the API, which have no other columns than `columns`
 * @param columns the columns unless the flags choose others
 * @throws CommandError INVALID_ARGUMENT for a column that there is not, and for columns of another format than a table
 */
export function selectColumns(
  row: DescMessage | undefined,
  columns: readonly ListColumn[],
  { output, columns: names }: ColumnFlags,
): readonly ListColumn[] {
  if (names !== undefined) {
    if (!hasColumns(output)) throw invalidFlag("--columns", `is for tables and CSV, not for -o ${output}`);
    return chooseColumns(names, [...columns, ...(row ? collectFieldColumns(row) : [])]);
  }
  if (output !== "wide" || row === undefined) return columns;
  const shown = new Set(columns.map(({ path }) => path));
  const others = row.fields.filter((field) => isValue(field) && !shown.has(field.jsonName));
  return addColumn(columns, ...others.map((field) => createFieldColumn(field.jsonName)));
}

function chooseColumns(names: string, all: readonly ListColumn[]): ListColumn[] {
  return names.split(",").map((name) => {
    const wanted = normalize(name);
    const found =
      all.find(({ path = "" }) => normalize(path) === wanted) ?? all.find(({ title }) => normalize(title) === wanted);
    if (found !== undefined) return { ...found, isKept: true };
    const known = new Set(all.map(({ path, title }) => path ?? title.toLowerCase().replaceAll(" ", "-")));
    throw invalidFlag("--columns", `there is no column ${name.trim()}: the columns are ${[...known].join(", ")}`);
  });
}

// The case of letters, and what is between the words of a name, make no difference: createTime, create-time, CREATE TIME.
function normalize(name: string): string {
  return name.toLowerCase().replace(/[\s_-]/g, "");
}

/** Collects a column for each field of a message, and of the messages in it. */
function collectFieldColumns(message: DescMessage, parent = "", depth = 1): FieldColumn[] {
  return message.fields.flatMap((field) => {
    const path = `${parent}${field.jsonName}`;
    if (field.fieldKind !== "message" || isValue(field)) return [createFieldColumn(path)];
    return depth < MAX_DEPTH ? collectFieldColumns(field.message, `${path}.`, depth + 1) : [];
  });
}

function createFieldColumn(path: string): FieldColumn {
  return createColumn(path.replace(/[A-Z]/g, (letter) => ` ${letter}`).toUpperCase(), path);
}

function isValue({ fieldKind, message }: DescField): boolean {
  if (fieldKind === "message") return message !== undefined && findWellKnownName(message) !== undefined;
  return fieldKind === "scalar" || fieldKind === "enum";
}
