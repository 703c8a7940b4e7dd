// The columns of lists.
import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import type { ListColumn } from "../../output/format.js";
import type { ColumnKind } from "../../output/table.js";

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
