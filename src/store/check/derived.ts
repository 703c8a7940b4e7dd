// What is derived from other rows: how it is checked and how it is built anew. One line of `derivedIndexes` adds another.
import { type SQL, sql } from "drizzle-orm";
import * as schema from "../schema-sqlite.js";
import { advisoryAliasCheck, advisoryIndexCheck, emptyAdvisoryIndex } from "./advisory-index.js";
import { bytesBelowSql, type CheckDatabase, isBelowSql } from "./database.js";
import type { Check } from "./findings.js";
import { type CheckedKind, type CheckedList, checkedKinds, entryTables } from "./index-lists.js";
import { orderIndexCheck } from "./order-index.js";
import { rankCheck } from "./ranks.js";

/** An index that can be rebuilt. */
export interface DerivedIndex {
  readonly check: Check;
  /** The statements that empty its tables and fill them from the rows; all run in one transaction. */
  readonly rebuild: (dialect: CheckDatabase["dialect"]) => readonly SQL[];
}

/** All derived indexes, in the order in which they are checked. */
export const derivedIndexes: readonly DerivedIndex[] = [
  { check: orderIndexCheck, rebuild: rebuildOrderIndex },
  { check: rankCheck, rebuild: emptyRanks },
  { check: advisoryAliasCheck, rebuild: rebuildAliases },
  { check: advisoryIndexCheck, rebuild: emptyAdvisoryIndex },
];

const { advisories, advisoryAliases, scopes, textRanks, timeRanks, totals } = schema;

// A list without ranks is read entry by entry until the service has ranked it.
function emptyRanks(): readonly SQL[] {
  return [textRanks, timeRanks].map((table) => sql`delete from ${table}`);
}

function rebuildOrderIndex(dialect: CheckDatabase["dialect"]): readonly SQL[] {
  const emptied = [...Object.values(entryTables), totals, scopes].map((table) => sql`delete from ${table}`);
  const parents = checkedKinds.map(
    ({ table, parent, where }) => sql`select ${parent} as uid from ${table} where ${parent} is not null and ${where}`,
  );
  const numbered = sql`insert into ${scopes} (uid) select uid from (${sql.join(parents, sql` union `)}) parents order by uid`;
  return [...emptyRanks(), ...emptied, numbered, ...buildEntries(dialect), ...buildTotals()];
}

// In the order of the primary key, so that the pages of the table are written once and are full.
function buildEntries(dialect: CheckDatabase["dialect"]): SQL[] {
  return Object.entries(entryTables).map(([type, table]) => {
    const entries = checkedKinds.flatMap((kind) =>
      kind.lists.filter((list) => list.type === type).map((list) => selectEntries(dialect, kind, list)),
    );
    return sql`insert into ${table} (list, scope, key, below) ${sql.join(entries, sql` union all `)} order by 2, 1, 3, 4`;
  });
}

function selectEntries(dialect: CheckDatabase["dialect"], kind: CheckedKind, list: CheckedList): SQL {
  const uid = sql`${kind.table.uid}`;
  const isRow = list.children ? isChild(kind) : isBelow(kind);
  return sql`select ${sql.raw(String(list.list))}, s.id, ${list.column ?? sql`''`}, ${bytesBelowSql(dialect, uid, SCOPE_UID)}
    from ${scopes} s join ${kind.table} on ${isRow} and ${kind.where}`;
}

function buildTotals(): SQL[] {
  return checkedKinds.flatMap((kind) =>
    [isBelow(kind), isChild(kind)].map(
      (isRow, i) => sql`insert into ${totals} (counter, scope, slot, n)
        select ${sql.raw(String(kind.counter + i))}, s.id, 0, count(*)
        from ${scopes} s join ${kind.table} on ${isRow} and ${kind.where} group by s.id order by s.id`,
    ),
  );
}

const SCOPE_UID = sql`s.uid`;

function isBelow({ table }: CheckedKind): SQL {
  return isBelowSql(sql`${table.uid}`, SCOPE_UID);
}

// The range of uids has an index in every table.
function isChild(kind: CheckedKind): SQL {
  return sql`${isBelow(kind)} and ${kind.parent} = ${SCOPE_UID}`;
}

function rebuildAliases(dialect: CheckDatabase["dialect"]): readonly SQL[] {
  const elements =
    dialect === "sqlite"
      ? sql`json_each(${advisories.aliases}) element`
      : sql`jsonb_array_elements_text(${advisories.aliases}) element (value)`;
  return [
    sql`delete from ${advisoryAliases}`,
    sql`insert into ${advisoryAliases} (alias, advisory_uid) select distinct element.value, ${advisories.uid}
      from ${advisories}, ${elements}`,
  ];
}
