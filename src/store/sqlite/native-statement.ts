// Runs a prepared query directly on better-sqlite3 (docs/adr/0007-responses-per-tick.md), with the parameters and the columns
// that the query builder computed.
import { Column, is, Param, Placeholder, SQL, type SQLWrapper } from "drizzle-orm";
import { prepareQuery } from "../statement.js";
import type { SqliteDatabase } from "./driver.js";

/** A statement on one connection: takes values by name, returns rows. */
export type NativeStatement = (values: object) => object[];

type Values = Readonly<Record<string, unknown>>;
type Binder = (values: Values) => unknown;
type Decode = (value: unknown) => unknown;

// A query that the builder has prepared.
interface Prepared {
  getQuery(): { readonly sql: string; readonly params: readonly unknown[] };
  /** The selected columns, in order; absent where the statement returns no rows. */
  readonly fields?: readonly { readonly path: readonly string[]; readonly field: unknown }[];
}

interface Selected {
  readonly name: string;
  /** Absent where the driver's value needs no decoding. */
  readonly decode: Decode | undefined;
}

/**
 * Prepares a query for a connection. Numbers, texts and nulls are returned as they are; columns that store
 * another type decode it. A missing value is an error, not null.
 *
 * @throws TypeError when the query selects objects within rows.
 */
export function prepareNative(
  db: SqliteDatabase,
  query: SQLWrapper,
  noteChanges: (rows: number) => void,
): NativeStatement {
  const prepared = prepareQuery(query) as Prepared;
  const { sql, params } = prepared.getQuery();
  const statement = db.prepare(sql);
  const binders = params.map(createBinder);
  const bind = (values: object): unknown[] => {
    const args = new Array<unknown>(binders.length);
    for (let i = 0; i < binders.length; i++) args[i] = (binders[i] as Binder)(values as Values);
    return args;
  };
  if (prepared.fields === undefined) {
    return (values) => {
      noteChanges(statement.run(...bind(values)).changes);
      return [];
    };
  }
  const selected = prepared.fields.map(toSelected);
  const raw = statement.raw();
  return (values) => {
    const rows = raw.all(...bind(values)) as unknown[][];
    if (!statement.readonly) noteChanges(rows.length);
    return rows.map((row) => toRow(selected, row));
  };
}

function createBinder(param: unknown): Binder {
  if (is(param, Placeholder)) return createNameBinder(param.name);
  if (!is(param, Param) || !is(param.value, Placeholder)) return () => param;
  const { encoder, value } = param;
  const read = createNameBinder(value.name);
  // Texts and numbers are bound as they are.
  if (encoder.mapToDriverValue === Column.prototype.mapToDriverValue) return read;
  return (values) => encoder.mapToDriverValue(read(values));
}

function createNameBinder(name: string): Binder {
  return (values) => {
    const value = values[name];
    if (value === undefined) throw new TypeError(`a statement was given no value for ${name}`);
    return value;
  };
}

function toSelected({ path: [name = "", ...rest], field }: NonNullable<Prepared["fields"]>[number]): Selected {
  if (rest.length > 0) throw new TypeError(`${name} selects more than a value`);
  if (is(field, Column)) {
    const stored = field.mapFromDriverValue === Column.prototype.mapFromDriverValue;
    return { name, decode: stored ? undefined : (value) => field.mapFromDriverValue(value) };
  }
  const { decoder } = (is(field, SQL) ? field : (field as SQL.Aliased).sql) as SQL & {
    decoder: { mapFromDriverValue: Decode };
  };
  return { name, decode: (value) => decoder.mapFromDriverValue(value) };
}

function toRow(selected: readonly Selected[], values: readonly unknown[]): object {
  const row: Record<string, unknown> = {};
  for (let i = 0; i < selected.length; i++) {
    const { name, decode } = selected[i] as Selected;
    const value = values[i];
    row[name] = decode === undefined || value === null ? value : decode(value);
  }
  return row;
}
