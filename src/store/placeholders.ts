import { getTableColumns, sql, type Table } from "drizzle-orm";

/** One placeholder per column of `table`, each named like the column's property, for a prepared insert. */
export function placeholdersFor<T extends Table>(table: T): T["$inferInsert"] {
  const names = Object.keys(getTableColumns(table));
  return Object.fromEntries(names.map((name) => [name, sql.placeholder(name)])) as T["$inferInsert"];
}

/** One placeholder per named column, for a prepared update; each is encoded as its column demands. */
export function placeholderSet<T extends Table, K extends keyof T["$inferInsert"] & string>(
  table: T,
  ...names: readonly K[]
): Pick<T["$inferInsert"], K> {
  const columns = getTableColumns(table);
  const entries = names.map((name) => [name, sql`${sql.param(sql.placeholder(name), columns[name])}`] as const);
  return Object.fromEntries(entries) as Pick<T["$inferInsert"], K>;
}
