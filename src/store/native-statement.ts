// Runs a prepared query on better-sqlite3 itself. The query builder's own way
// from values to parameters and from columns to rows looks every column's kind
// up again for every row, which costs more than SQLite takes to find it.
import { Column, is, Param, Placeholder, SQL } from "drizzle-orm";
import type { SqliteDatabase } from "./sqlite-driver.js";
import type { Preparable } from "./statement.js";

/** A statement on one connection: takes values by name, gives rows. */
export type NativeStatement = (values: object) => object[];

type Values = Readonly<Record<string, unknown>>;
type Bind = (values: Values) => unknown;
type Decode = (value: unknown) => unknown;

// What a query that the builder has prepared consists of.
interface Prepared {
  getQuery(): { readonly sql: string; readonly params: readonly unknown[] };
  /** What is selected, in order; absent where no rows come back. */
  readonly fields?: readonly { readonly path: readonly string[]; readonly field: unknown }[];
}

// SQLite plans by the value of a limit that is a parameter and nothing else, and therefore plans
// anew whenever one is bound, at four times the cost of a point read. Of a sum it knows nothing.
const BARE_LIMIT = /( (?:limit|offset) \?)(?= |\)|$)/g;

interface Selected {
  readonly name: string;
  /** Absent where the driver's value is the value. */
  readonly decode: Decode | undefined;
}

/**
 * Prepares a query for a connection. Numbers, texts and nulls pass as they are; columns that store
 * something else decode it. A value that is not given is an error, never a null.
 *
 * @throws TypeError when the query selects objects within rows.
 */
export function nativeStatement(db: SqliteDatabase, query: Preparable): NativeStatement {
  const prepared = query.prepare() as Prepared;
  const { sql, params } = prepared.getQuery();
  const statement = db.prepare(sql.replace(BARE_LIMIT, "$1+0"));
  const binds = params.map(bindOf);
  const bound = (values: object): unknown[] => {
    const args = new Array<unknown>(binds.length);
    for (let i = 0; i < binds.length; i++) args[i] = (binds[i] as Bind)(values as Values);
    return args;
  };
  if (prepared.fields === undefined) {
    return (values) => {
      statement.run(...bound(values));
      return [];
    };
  }
  const selected = prepared.fields.map(selectedOf);
  const raw = statement.raw();
  return (values) => (raw.all(...bound(values)) as unknown[][]).map((row) => rowOf(selected, row));
}

function bindOf(param: unknown): Bind {
  if (is(param, Placeholder)) return valueNamed(param.name);
  if (!is(param, Param) || !is(param.value, Placeholder)) return () => param;
  const { encoder, value } = param;
  const read = valueNamed(value.name);
  return (values) => encoder.mapToDriverValue(read(values));
}

function valueNamed(name: string): Bind {
  return (values) => {
    const value = values[name];
    if (value === undefined) throw new TypeError(`a statement was given no value for ${name}`);
    return value;
  };
}

function selectedOf({ path: [name = "", ...rest], field }: NonNullable<Prepared["fields"]>[number]): Selected {
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

function rowOf(selected: readonly Selected[], values: readonly unknown[]): object {
  const row: Record<string, unknown> = {};
  for (let i = 0; i < selected.length; i++) {
    const { name, decode } = selected[i] as Selected;
    const value = values[i];
    row[name] = decode === undefined || value === null ? value : decode(value);
  }
  return row;
}
