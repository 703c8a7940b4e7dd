// A kind of resource as it is stored, which the file of each kind declares once: its table, how it is listed and counted, and
// what its columns refer to. store/kinds.ts lists all kinds. The schema, lists, quotas, `arbor check` and `arbor copy` read
// that list, and `tx.table` gives the rows of a kind.
import type { BuildColumns, SQL } from "drizzle-orm";
import type {
  SQLiteColumnBuilderBase,
  SQLiteTable,
  SQLiteTableExtraConfigValue,
  SQLiteTableWithColumns,
} from "drizzle-orm/sqlite-core";
import { ListedTable } from "./lists/listed-table.js";
import { firstCounterOf, type ListedKind, type ListedName, type ListedRow } from "./lists/resource.js";
import { defineListedRows } from "./rows.js";
import type { Executor } from "./statement.js";
import type { Columns, ListedRowOf } from "./tables/columns-sqlite.js";
import type { KindTables } from "./tables/kind-tables.js";
import { buildListIndexes, type TableColumns } from "./tables/list-indexes.js";

type Builders = Readonly<Record<string, SQLiteColumnBuilderBase>>;

type TableWith<Name extends string, C extends Builders> = SQLiteTableWithColumns<{
  name: Name;
  schema: undefined;
  columns: BuildColumns<Name, C, "sqlite">;
  dialect: "sqlite";
}>;

type RowWith<Name extends string, C extends Builders> =
  ListedRowOf<TableWith<Name, C>> extends infer Row extends ListedRow ? Row : never;

/** A column without a foreign key that names a row of another table. */
export interface UndeclaredReference {
  /** The name of the other table in the schema. */
  readonly to: ListedName;
  /** The rows that must have a counterpart, where those with null are not the only exception. */
  readonly where?: (column: SQL) => SQL;
  /** What the operator does with a row whose counterpart is missing; a backup is restored unless given. */
  readonly remedy?: (uid: string) => string;
}

interface KindDeclaration<Name extends string, C extends Builders, Parent extends string, Fixed extends string>
  extends Pick<ListedKind, "join" | "filters" | "quota"> {
  /** Part of stored keys of counters: unique, and never changes. */
  readonly number: number;
  /** The name of the table in the schema. */
  readonly key: ListedName;
  /** The name of the table in the database. */
  readonly name: Name;
  /** The columns. `t` has the tables that foreign keys refer to. */
  readonly columns: (c: Columns, t: KindTables) => C;
  /** The indexes besides those of lists. */
  readonly indexes?: (c: Columns, t: BuildColumns<Name, C, "sqlite">) => readonly SQLiteTableExtraConfigValue[];
  /** The property that stores the uid of the parent. */
  readonly parent: Parent & keyof C;
  /** The property that each order sorts by; each has an index. */
  readonly sorts: Readonly<Record<string, keyof C & string>>;
  readonly families?: { readonly column: keyof C & string; readonly values: readonly number[] };
  /** The properties that no patch changes, besides the uid, the parent and the time of the creation. */
  readonly fixed?: readonly (Fixed & keyof C)[];
  /** The columns without a foreign key that name rows, by their properties. */
  readonly references?: Readonly<Partial<Record<keyof C & string, UndeclaredReference>>>;
  readonly includesSelf?: boolean;
  readonly hasRowsBelow?: boolean;
  readonly hasNameWords?: boolean;
}

/** A declared kind; {@link defineKind} adds the class of its rows. */
export interface DeclaredKind<Row extends ListedRow = ListedRow, Patch extends object = object, Table = SQLiteTable>
  extends ListedKind<Row, Patch> {
  readonly key: ListedName;
  readonly references: Readonly<Record<string, UndeclaredReference>>;
  /** Builds the table from a dialect's column types. */
  readonly build: (c: Columns, t: KindTables) => Table;
}

/** The table of a kind. */
export type KindTable<K extends DeclaredKind> = ReturnType<K["build"]>;
/** A row of a kind. */
export type KindRow<K> = K extends ListedKind<infer Row, infer _> ? Row : never;
/** What an update changes in a row of a kind. */
export type KindPatch<K> = K extends ListedKind<infer _, infer Patch> ? Patch : never;

/** The sort fields of most kinds: the name and both times. */
export const usualSorts = { name: "name", created_at: "createTimeMs", updated_at: "updateTimeMs" } as const;

/** The sort field of kinds that are sorted by their creation alone. */
export const byCreation = { created_at: "createTimeMs" } as const;

/**
 * Declares a kind. The file of the kind adds its table to {@link KindTables}, then has its statements and its class, which need
 * these types, and {@link defineKind} at the end.
 */
export function declareKind<
  Name extends string,
  C extends Builders,
  Parent extends string,
  Fixed extends string = never,
>(
  declaration: KindDeclaration<Name, C, Parent, Fixed>,
): DeclaredKind<
  RowWith<Name, C>,
  Partial<Omit<RowWith<Name, C>, "uid" | "createTimeMs" | "updateTimeMs" | Parent | Fixed>>,
  TableWith<Name, C>
> {
  const { number, name, columns, indexes, fixed = [], references = {}, ...kind } = declaration;
  const { key, parent, sorts, families } = kind;
  const build = (c: Columns, t: KindTables) =>
    c.table(name, columns(c, t), (own) => [
      ...buildListIndexes(c, name, own as unknown as TableColumns, { parent, sorts, family: families?.column }),
      ...(indexes?.(c, own) ?? []),
    ]);
  return {
    includesSelf: false,
    hasRowsBelow: false,
    hasNameWords: false,
    number,
    ...kind,
    references: references as DeclaredKind["references"],
    build,
    table: (t) => t[key],
    counter: firstCounterOf(number),
    rows: defineListedRows(key, parent, fixed, [
      ...(families ? [families.column] : []),
      ...(kind.hasNameWords ? ["name"] : []),
    ]),
  };
}

/** A kind with the class of its rows. */
export interface Kind<Rows = unknown> {
  /** The rows in a transaction. */
  readonly open: (tx: Executor) => Rows;
}

/**
 * Defines a declared kind.
 *
 * @param rows the class of its rows, where it has more than those of all kinds
 */
export function defineKind<Row extends ListedRow, Patch extends object, K extends DeclaredKind<Row, Patch>>(
  declared: K & DeclaredKind<Row, Patch>,
): K & Kind<ListedTable<Row, Patch>>;
export function defineKind<K extends DeclaredKind, Rows>(
  declared: K,
  rows: new (tx: Executor, kind: K) => Rows,
): K & Kind<Rows>;
export function defineKind(declared: DeclaredKind, rows: typeof ListedTable = ListedTable) {
  return { ...declared, open: (tx: Executor) => new rows(tx, declared) };
}
