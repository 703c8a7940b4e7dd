// Whether every row that another one names exists, by the foreign keys of the schema and by what no constraint declares,
// and whether the uid of each row continues the uid of its parent, because rights and lists go by the path.
import { getTableName, is, type SQL, sql } from "drizzle-orm";
import { type AnySQLiteColumn, getTableConfig, SQLiteTable } from "drizzle-orm/sqlite-core";
import type { DeclaredKind } from "../kind.js";
import { kinds } from "../kinds.js";
import type { ListedKind } from "../lists/resource.js";
import { columnOf } from "../statement.js";
import { schema } from "../tables/schema-sqlite.js";
import type { Tables } from "../tables/tables.js";
import { at, formatKey, formatRowCondition, primaryKeyOf, tables } from "./database.js";
import { type Check, type CheckContext, type Finding, MAX_KEPT } from "./findings.js";

type Row = Readonly<Record<string, unknown>>;

/** A column that names a row of another table. */
export interface Reference {
  readonly from: AnySQLiteColumn;
  readonly to: AnySQLiteColumn;
  /** The rows that must have a counterpart, where those with null are not the only exception. */
  readonly where?: SQL;
  readonly problem?: string;
  readonly remedy?: (row: Row) => string;
}

const deleteRow =
  (table: SQLiteTable) =>
  (row: Row): string =>
    `delete the row, which nothing reads: DELETE FROM ${getTableConfig(table).name} WHERE ${formatRowCondition(table, row)}`;

/** Columns without a foreign key that may name what is gone. */
export const outliving: readonly AnySQLiteColumn[] = [
  // Who requested something.
  schema.accessRequests.identityUid,
  // Audit rows and names in the registry outlive their organisation.
  schema.audit.rootUid,
  schema.audit.subjectUid,
  schema.audit.actorUid,
  schema.auditChain.rootUid,
  schema.auditCheckpoints.rootUid,
  schema.auditHeads.rootUid,
  schema.registryNames.groupUid,
  // An event of what was deleted may still have to be delivered.
  schema.eventDeliveries.subjectUid,
  // The refresh token of an identity that is gone is rejected, and expires. So does the record of a revoked token.
  schema.refreshTokens.identityUid,
  schema.revokedTokens.identityUid,
];

/** What columns of a kind name without a foreign key, as its declaration says. */
export function findUndeclared({ table, references }: DeclaredKind, tables: Tables): Reference[] {
  return Object.entries(references).map(([property, { to, where, remedy }]) => {
    const from = columnOf(table(tables), property);
    return {
      from,
      to: tables[to].uid,
      ...(where && { where: where(at("c", from)) }),
      ...(remedy && { remedy: ({ uid }) => remedy(String(uid)) }),
    };
  });
}

// Columns without a foreign key.
const undeclared: readonly Reference[] = [
  ...kinds.flatMap((kind) => findUndeclared(kind, schema)),
  { from: schema.eventPositions.rootUid, to: schema.groups.uid },
  { from: schema.formerScimUsers.identityUid, to: schema.identities.uid },
  {
    from: schema.scimMembers.groupUid,
    to: schema.scimGroups.uid,
    // The members of a deleted group are deleted in parts.
    where: sql`not exists (select 1 from ${schema.scimWork} w where w.kind = 'members' and w.uid = c.group_uid)`,
    remedy: deleteRow(schema.scimMembers),
  },
  { from: schema.tagHistory.tagUid, to: schema.tags.uid, remedy: deleteRow(schema.tagHistory) },
  { from: schema.tagMarks.repoUid, to: schema.repos.uid, remedy: deleteRow(schema.tagMarks) },
  { from: schema.manifests.repoUid, to: schema.repos.uid, remedy: deleteRow(schema.manifests) },
  {
    from: schema.groups.uid,
    to: schema.registryNames.groupUid,
    where: sql`c.verified and c.parent_uid is null`,
    problem: "the verified group has no name in the registry",
    remedy: ({ uid }) => `arbor admin groups verify ${uid}`,
  },
];

const referencesOf = (table: SQLiteTable): Reference[] =>
  getTableConfig(table).foreignKeys.flatMap((key) => {
    const { columns, foreignColumns } = key.reference();
    const [from, to] = [columns[0], foreignColumns[0]];
    if (from === undefined || to === undefined || columns.length !== 1) throw new TypeError(`${key.getName()} is wide`);
    return [{ from, to }];
  });

/**
 * Finds what rows of these tables name: by their foreign keys, all of one column, and by what no constraint declares.
 */
export function findReferences(of: readonly SQLiteTable[]): Reference[] {
  return [...of.flatMap(referencesOf), ...undeclared.filter(({ from }) => of.includes(tableOf(from)))];
}

/** Finds rows that name a row which does not exist. */
export const referenceCheck: Check = {
  name: "references",
  async run(context) {
    for (const reference of findReferences(tables)) await checkReference(context, reference);
    await checkRegistryNames(context);
    await checkDeactivated(context);
  },
};

async function checkReference(context: CheckContext, { from, to, where, ...texts }: Reference): Promise<void> {
  const table = tableOf(from);
  const target = getTableConfig(tableOf(to)).name;
  const { name } = getTableConfig(table);
  context.progress(`${name}.${from.name}`);
  const faulty = sql`${table} c where ${at("c", from)} is not null and ${where ?? sql`true`}
    and not exists (select 1 from ${tableOf(to)} p where ${at("p", to)} = ${at("c", from)})`;
  const remedy = texts.remedy ?? (() => "restore a backup");
  await reportRows(context, {
    rule: `${name}.${from.name}`,
    table,
    columns: [from],
    faulty,
    describe: (row) => ({
      problem: texts.problem ?? `${from.name} names ${row[from.name]}, which is not in ${target}`,
      remedy: remedy(row),
    }),
  });
}

// A verified group cannot change its name, and pulls go by it.
async function checkRegistryNames(context: CheckContext): Promise<void> {
  const { groups, registryNames } = schema;
  const faulty = sql`${registryNames} c where exists (select 1 from ${groups} g
    where g.uid = c.group_uid and g.verified and g.name <> c.name)`;
  await reportRows(context, {
    rule: "registry_names.name",
    table: registryNames,
    columns: [registryNames.groupUid],
    faulty,
    describe: ({ group_uid: uid }) => ({
      problem: `the group ${uid} was verified under another name`,
      remedy: "restore a backup",
    }),
  });
}

// An identity is deactivated exactly while the person of its directory is inactive or deleted.
async function checkDeactivated(context: CheckContext): Promise<void> {
  const { identities, scimUsers, formerScimUsers } = schema;
  context.progress("identities.deactivate_time_ms");
  // Not by `exists`: those who were deleted have no index by identity.
  const former = sql`(select identity_uid from ${formerScimUsers} where identity_uid is not null)`;
  const isActive = (uid: SQL) => sql`exists (select 1 from ${identities} i
    where i.uid = ${uid} and i.deactivate_time_ms is null and i.delete_time_ms is null)`;
  await reportRows(context, {
    rule: "identities.deactivate_time_ms",
    table: identities,
    columns: [identities.providerUid],
    faulty: sql`${identities} c where c.deactivate_time_ms is not null and c.delete_time_ms is null
      and c.uid not in ${former}
      and not exists (select 1 from ${scimUsers} u where u.identity_uid = c.uid and not u.active)`,
    describe: ({ provider_uid: provider }) => ({
      problem: "the identity is deactivated, and no person of its directory is",
      remedy: `delete the identity provider ${provider}, if its deletion has ended early; otherwise restore a backup`,
    }),
  });
  for (const { table, isInactive } of [
    { table: scimUsers, isInactive: sql`not c.active` },
    { table: formerScimUsers, isInactive: sql`true` },
  ]) {
    await reportRows(context, {
      rule: `${getTableConfig(table).name}.active`,
      table,
      columns: [table.identityUid],
      faulty: sql`${table} c where ${isInactive} and ${isActive(sql`c.identity_uid`)}`,
      describe: ({ identity_uid: uid }) => ({
        problem: `the directory has deactivated the person, and the identity ${uid} is active`,
        remedy: "let the directory send the person once more, active and then as it is",
      }),
    });
  }
}

/** A query for rows that break a rule. */
interface FaultyRows {
  readonly rule: string;
  readonly table: SQLiteTable;
  /** What is read besides the primary key. */
  readonly columns: readonly AnySQLiteColumn[];
  /** The part of the query after FROM; it calls the table `c`. */
  readonly faulty: SQL;
  readonly describe: (row: Row) => Pick<Finding, "problem" | "remedy" | "repairable">;
}

/** Reports rows that break a rule: the first ones by their keys, and the number of the rest. */
export async function reportRows(context: CheckContext, { rule, table, columns, faulty, describe }: FaultyRows) {
  const keys = primaryKeyOf(table);
  const join = (some: Iterable<AnySQLiteColumn>) =>
    sql.join(
      [...some].map((column) => at("c", column)),
      sql`, `,
    );
  const [list, order] = [join(new Set([...keys, ...columns])), join(keys)];
  const rows = await context.db.all<Row>(sql`select ${list} from ${faulty} order by ${order} limit ${MAX_KEPT}`);
  const [first] = rows;
  if (first === undefined) return;
  const { name } = getTableConfig(table);
  for (const row of rows) context.report(rule, { table: name, key: formatKey(table, row), ...describe(row) });
  if (rows.length < MAX_KEPT) return;
  const [all] = await context.db.all<{ n: number | string }>(sql`select count(*) as n from ${faulty}`);
  const rest = Number(all?.n ?? 0) - rows.length;
  if (rest > 0) context.report(rule, { table: name, key: formatKey(table, first), ...describe(first) }, rest);
}

function tableOf(column: AnySQLiteColumn): SQLiteTable {
  const { table } = column;
  if (!is(table, SQLiteTable)) throw new TypeError(`${column.name} is in no table`);
  return table;
}

/** Creates the check, which finds rows of these kinds whose uid does not lie directly below their parent. */
export const createUidCheck = (kinds: readonly ListedKind[]): Check => ({
  name: "uids",
  async run(context) {
    const checked = new Set<string>();
    for (const kind of kinds) {
      const table = kind.table(schema);
      const name = getTableName(table);
      if (checked.has(name)) continue;
      checked.add(name);
      context.progress(name);
      const column = columnOf(table, kind.parent);
      const [uid, parent] = [at("c", table.uid), at("c", column)];
      // A root has 40 hex digits, and every further segment a slash and 16.
      const faulty = sql`${table} c where case when ${parent} is null then length(${uid}) <> 40
        else length(${uid}) <> length(${parent}) + 17 or substr(${uid}, 1, length(${parent}) + 1) <> ${parent} || '/' end`;
      await reportRows(context, {
        rule: name,
        table,
        columns: [column],
        faulty,
        describe: (row) => ({
          problem:
            row[column.name] === null
              ? "the row has no parent, and its uid is not that of a root"
              : `the uid does not lie directly below ${row[column.name]}, its ${column.name}`,
          remedy: "restore a backup",
        }),
      });
    }
  },
});
