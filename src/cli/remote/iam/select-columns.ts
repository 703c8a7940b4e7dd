// The columns that a list shows: its own, those of `-o wide`, or those of `--columns`. Loaded when a list is printed, because the
// names of capabilities need their descriptors.
import type { DescField, DescMessage } from "@bufbuild/protobuf";
import { CapabilitySchema } from "#gen/chainguard/capabilities/capabilities_pb.js";
import { findWellKnownName } from "../../../codec/fields.js";
import { invalidFlag } from "../../errors.js";
import type { ListColumn } from "../../output/format.js";
import { type Format, hasColumns } from "../flags.js";
import { addColumn, createColumn, type FieldColumn } from "./columns.js";
import { findCapability } from "./field-flags.js";

/** How deep in messages the fields are that columns show. */
const MAX_DEPTH = 3;

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
    if (field.fieldKind !== "message" || isValue(field)) return [createFieldColumn(path, field)];
    return depth < MAX_DEPTH ? collectFieldColumns(field.message, `${path}.`, depth + 1) : [];
  });
}

function createFieldColumn(path: string, field?: DescField): FieldColumn {
  const column = createColumn(path.replace(/[A-Z]/g, (letter) => ` ${letter}`).toUpperCase(), path);
  const { enum: names } = field ?? {};
  if (names === undefined || names.typeName !== CapabilitySchema.typeName) return column;
  // As flags take them.
  const format = (name: string) => (name === "" ? "" : (findCapability(name) ?? name));
  return { ...column, kind: "prose", cell: (row) => column.cell(row).split(",").map(format).join(",") };
}

function isValue({ fieldKind, message }: DescField): boolean {
  if (fieldKind === "message") return message !== undefined && findWellKnownName(message) !== undefined;
  return fieldKind === "scalar" || fieldKind === "enum";
}
