// The lists of the index as its checks walk them: every number, and what its entries are made of.
import { getTableName, type SQL, sql } from "drizzle-orm";
import type { AnySQLiteColumn } from "drizzle-orm/sqlite-core";
import { childListOf, columnOf, type IndexedTables, type IndexList, type ResourceIndex } from "../resource-index.js";
import { resourceIndexes } from "../resource-indexes.js";
import * as schema from "../schema-sqlite.js";
import type { Tables } from "../tables.js";

/** A list that every scope may have. */
export interface CheckedList extends IndexList {
  /** Whether it has the children of the scope alone. */
  readonly children: boolean;
  /** What its entries are ordered by; undefined for the order of uids. */
  readonly column: AnySQLiteColumn | undefined;
  /** Such as `groups by name`. */
  readonly title: string;
}

/** A kind of rows with its lists. */
export interface CheckedKind {
  readonly table: IndexedTables;
  readonly parent: AnySQLiteColumn;
  /** The rows that the index has. */
  readonly where: SQL;
  /** The number of the totals of subtrees; those of children have the next number. */
  readonly counter: number;
  /** The number of the lists of subtrees in the order of uids, which have ranks and no entries. */
  readonly descendantsByUid: number;
  readonly lists: readonly CheckedList[];
  /** Such as `tags`. */
  readonly title: string;
}

const tables = schema as unknown as Tables;

/** All kinds. */
export const checkedKinds: readonly CheckedKind[] = resourceIndexes.map((index) => {
  const table = index.table(tables);
  return {
    table,
    parent: columnOf(table, index.parent),
    where: index.where?.condition(tables) ?? sql`true`,
    counter: index.counter,
    descendantsByUid: index.descendantsByUid,
    lists: buildLists(index),
    title: getTableName(table),
  };
});

/** All lists by their numbers. */
export const checkedLists: ReadonlyMap<number, CheckedList> = new Map(
  checkedKinds.flatMap(({ lists }) => lists.map((one) => [one.list, one] as const)),
);

/** The tables of entries by the type of their keys. */
export const entryTables = { text: schema.textEntries, time: schema.timeEntries } as const;

function buildLists(index: ResourceIndex): CheckedList[] {
  const table = index.table(tables);
  const name = getTableName(table);
  const lists: CheckedList[] = [];
  for (const sort of Object.values(index.sorts)) {
    const column = columnOf(table, sort.column);
    const { list, type } = sort;
    lists.push({ list, type, column, children: false, title: `${name} by ${column.name}` });
    if (!index.childLists) continue;
    lists.push({ list: childListOf(sort), type, column, children: true, title: `child ${name} by ${column.name}` });
  }
  if (index.childLists) {
    const list = index.childrenByUid;
    lists.push({ list, type: "text", column: undefined, children: true, title: `child ${name} by uid` });
  }
  return lists;
}
