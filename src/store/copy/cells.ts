// The values of columns in the form that a copy carries and digests, and their conversion from and to both databases. A
// cell is a text or null: integers in decimal, so that none beyond 2^53 is rounded; booleans as `true` and `false`; bytes
// in hex digits; JSON without spaces and with sorted keys, because jsonb keeps neither spaces nor the order of keys.
import type { CellType, CopiedTable } from "./tables.js";

/** The value of a column. */
export type Cell = string | null;

/** The cells of a row, in the order of the columns of its table. */
export type CopiedRow = readonly Cell[];

/** A value as the SQLite driver returns and takes it, with integers as bigint. */
export type SqliteValue = string | bigint | Buffer | null;

type Convert<From, To> = (value: From) => To;

const fromSqlite: Readonly<Record<CellType, Convert<SqliteValue, string>>> = {
  text: String,
  integer: String,
  boolean(value) {
    if (value !== 0n && value !== 1n) throw new Error(`${value} is not a boolean`);
    return String(value === 1n);
  },
  bytes: (value) => (value as Buffer).toString("hex"),
  json: (value) => formatJson(String(value)),
};

const toSqlite: Readonly<Record<CellType, Convert<string, SqliteValue>>> = {
  text: (cell) => cell,
  integer: BigInt,
  boolean: (cell) => (cell === "true" ? 1n : 0n),
  bytes: (cell) => Buffer.from(cell, "hex"),
  json: (cell) => cell,
};

// PostgreSQL sends all values as text; bytes as `\x` and hex digits.
const fromPg: Readonly<Record<CellType, Convert<string, string>>> = {
  text: (value) => value,
  integer: (value) => value,
  boolean: (value) => String(value === "t"),
  bytes: (value) => value.slice(2),
  json: formatJson,
};

/** How a cell of each type, sent as text, becomes a value of PostgreSQL. */
export const pgCasts: Readonly<Record<CellType, (parameter: string) => string>> = {
  text: (parameter) => parameter,
  integer: (parameter) => `${parameter}::bigint`,
  boolean: (parameter) => `${parameter}::boolean`,
  bytes: (parameter) => `decode(${parameter}, 'hex')`,
  json: (parameter) => `${parameter}::jsonb`,
};

/**
 * Reads a row of SQLite.
 *
 * @throws Error naming the row and the column with a value that this column cannot have
 */
export function readSqliteRow(table: CopiedTable, values: readonly SqliteValue[]): CopiedRow {
  return convertRow(table, values, fromSqlite);
}

/** The values of a row for SQLite. */
export function toSqliteRow(table: CopiedTable, row: CopiedRow): SqliteValue[] {
  return row.map((cell, i) => (cell === null ? null : toSqlite[typeAt(table, i)](cell)));
}

/** Reads a row of PostgreSQL, whose values are texts. */
export function readPgRow(table: CopiedTable, values: readonly Cell[]): CopiedRow {
  return convertRow(table, values, fromPg);
}

/**
 * Rejects what PostgreSQL cannot store: the character U+0000, and half of a surrogate pair in JSON.
 *
 * @throws Error naming the row and the column
 */
export function assertStorableInPg(table: CopiedTable, row: CopiedRow): void {
  for (const [i, cell] of row.entries()) {
    if (cell === null) continue;
    const isStorable = typeAt(table, i) === "json" ? !UNSTORABLE_ESCAPE.test(cell) : !cell.includes("\0");
    if (!isStorable) {
      throw new Error(
        `${describeCell(table, row, i)}: PostgreSQL cannot store the character U+0000 or half a character`,
      );
    }
  }
}

// JSON.stringify escapes no other characters in this way.
const UNSTORABLE_ESCAPE = /(?<!\\)(?:\\\\)*\\u(?:0000|d[89a-f])/;

function convertRow<From>(
  table: CopiedTable,
  values: readonly (From | null)[],
  converters: Readonly<Record<CellType, Convert<From, string>>>,
): CopiedRow {
  const row: Cell[] = new Array(values.length);
  for (let i = 0; i < values.length; i++) {
    const value = values[i] ?? null;
    try {
      row[i] = value === null ? null : converters[typeAt(table, i)](value);
    } catch (error) {
      throw new Error(`${describeCell(table, values, i)}: ${(error as Error).message}`, { cause: error });
    }
  }
  return row;
}

function typeAt({ columns }: CopiedTable, i: number): CellType {
  return columns[i]?.type ?? "text";
}

function describeCell({ name, columns, key }: CopiedTable, values: readonly unknown[], i: number): string {
  const keyText = key.map((column) => String(values[columns.findIndex((one) => one.name === column.name)]));
  return `table ${name}, row ${keyText.join(" ")}, column ${columns[i]?.name}`;
}

function formatJson(text: string): string {
  if (text === "{}" || text === "[]") return text;
  return JSON.stringify(JSON.parse(text, sortKeys));
}

// A reviver sees inner values first. Only objects with several keys are built anew.
function sortKeys(_: string, value: unknown): unknown {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  const keys = Object.keys(value);
  if (keys.length < 2) return value;
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(entries);
}
