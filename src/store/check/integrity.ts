// Whether the file or the server holds what the schema declares, and holds it undamaged.
import { type SQL, sql } from "drizzle-orm";
import { getTableConfig } from "drizzle-orm/sqlite-core";
import { assertFinished } from "../copy-mark.js";
import type { SqlRow } from "../migrate/data-migration.js";
import { dataMigrations } from "../migrate/data-migrations.js";
import { readState, readStateAsync } from "../migrate/state.js";
import { noInstallation } from "../sqlite/data-directory.js";
import { OLDEST_VERSION } from "../version.js";
import { tables } from "./database.js";
import type { Check, CheckContext } from "./findings.js";
import { findUnknownObjects, listObjectNotes, UNKNOWN_OBJECT_REMEDY } from "./objects.js";

const RESTORE = "restore a backup";

interface Named {
  readonly table: string;
  readonly name: string;
}

/**
 * Compares the tables, columns and indexes of the database with those of the schema, and finds what else could change their
 * rows. Without a table or a column no other
 * check can run. Throws FAILED_PRECONDITION when there is no table of the schema, or the tables of a version before 1.0.
 */
export const schemaCheck: Check = {
  name: "schema",
  async run(context) {
    const { db } = context;
    const query = (statement: string) => db.all<SqlRow>(sql.raw(statement));
    // Throws for a version before 1.0.
    await readStateAsync(readState(db.dialect, dataMigrations), query);
    const [columns, indexes] = db.dialect === "sqlite" ? sqliteCatalog : pgCatalog;
    const knownColumns = toSet(await db.all<Named>(columns));
    if (!tables.some((one) => [...knownColumns].some((name) => name.startsWith(`${getTableConfig(one).name} `)))) {
      throw noInstallation(db.name, "it has no tables of one");
    }
    const knownIndexes = toSet(await db.all<Named>(indexes));
    const remedy = `${RESTORE}; if the database is of an older version, upgrade it with that of this command first`;
    const incomplete = new Set<string>();
    for (const declared of tables) {
      const { name: table, columns: its, indexes: ofTable } = getTableConfig(declared);
      const lost = its.filter(({ name }) => !knownColumns.has(`${table} ${name}`));
      if (lost.length > 0) context.stop();
      if (lost.length === its.length) {
        context.report("table", { table, key: table, problem: "the table is missing", remedy });
        continue;
      }
      if (lost.length > 0) incomplete.add(table);
      for (const { name } of lost)
        context.report("column", { table, key: name, problem: "the column is missing", remedy });
      for (const { config } of ofTable) {
        if (knownIndexes.has(`${table} ${config.name}`)) continue;
        context.report("index", { table, key: config.name, problem: "the index is missing", remedy });
      }
    }
    for (const { table, name, problem } of await findUnknownObjects(db.dialect, query)) {
      // Without a column its table is another one, of course.
      if (table === name && incomplete.has(table)) continue;
      context.report("object", { table, key: name, problem, remedy: UNKNOWN_OBJECT_REMEDY });
    }
    for (const note of await listObjectNotes(db.dialect, query)) context.note(note);
    // An unfinished copy lacks rows, and every check would find that.
    if (!knownColumns.has("settings value")) return;
    const [row] = await db.all<{ value: string }>(sql`select value from settings where name = ${OLDEST_VERSION}`);
    assertFinished(row?.value);
  },
};

// The schema of the tables: the first one of the search path may be another.
const pgSchema = sql`coalesce((select relnamespace from pg_class where oid = to_regclass('settings')), current_schema()::regnamespace)`;

const sqliteCatalog: readonly [columns: SQL, indexes: SQL] = [
  sql`select m.name as "table", p.name as name from sqlite_schema m join pragma_table_info(m.name) p where m.type = 'table'`,
  sql`select tbl_name as "table", name from sqlite_schema where type = 'index'`,
];
const pgCatalog: readonly [columns: SQL, indexes: SQL] = [
  sql`select c.relname as "table", a.attname as name from pg_class c join pg_attribute a on a.attrelid = c.oid
    where c.relnamespace = ${pgSchema} and c.relkind in ('r', 'p', 'v', 'f') and a.attnum > 0 and not a.attisdropped`,
  sql`select c.relname as "table", i.relname as name from pg_index x join pg_class c on c.oid = x.indrelid
    join pg_class i on i.oid = x.indexrelid where c.relnamespace = ${pgSchema}`,
];

function toSet(rows: readonly Named[]): ReadonlySet<string> {
  return new Set(rows.map(({ table, name }) => `${table} ${name}`));
}

/** Reads all pages and indexes of a SQLite file; on PostgreSQL what the server knows of its constraints and indexes. */
export const integrityCheck: Check = {
  name: "integrity",
  run: (context) => (context.db.dialect === "sqlite" ? checkSqliteFile(context) : checkPgCatalog(context)),
};

async function checkSqliteFile({ db, report }: CheckContext): Promise<void> {
  for (const { integrity_check: problem } of await db.all<{ integrity_check: string }>(sql`pragma integrity_check`)) {
    if (problem === "ok") continue;
    // Such as "row 5 missing from index roles_name".
    const key = /index (\w+)$/.exec(problem)?.[1] ?? "the file";
    report("file", { table: db.name, key, problem, remedy: RESTORE });
  }
}

async function checkPgCatalog(context: CheckContext): Promise<void> {
  const { db, report } = context;
  const constraints = await db.all<Named>(sql`
    select c.relname as "table", k.conname as name from pg_constraint k join pg_class c on c.oid = k.conrelid
    where c.relnamespace = ${pgSchema} and not k.convalidated order by 1, 2`);
  for (const { table, name } of constraints) {
    const remedy = `ALTER TABLE ${table} VALIDATE CONSTRAINT ${name}`;
    report("constraint", { table, key: name, problem: "the constraint is not validated", remedy });
  }
  const invalid = await db.all<Named>(sql`
    select c.relname as "table", i.relname as name from pg_index x join pg_class c on c.oid = x.indrelid
    join pg_class i on i.oid = x.indexrelid
    where c.relnamespace = ${pgSchema} and not (x.indisvalid and x.indisready) order by 1, 2`);
  for (const { table, name } of invalid) {
    report("index", { table, key: name, problem: "the index is not valid", remedy: `REINDEX INDEX ${name}` });
  }
  const planned = await db.all<Named>(sql`
    select c.relname as "table", a.attname as name from pg_attribute a join pg_class c on c.oid = a.attrelid
    where c.relname in ${tables.map((one) => getTableConfig(one).name)} and c.relnamespace = ${pgSchema}
    and a.attnum > 0 and not a.attisdropped and coalesce(a.attstattarget, -1) <> 0 order by 1, 2`);
  for (const { table, name } of planned) {
    const problem = "the server gathers statistics of the column, by which it may choose slow plans";
    const remedy = `ALTER TABLE ${table} ALTER COLUMN ${name} SET STATISTICS 0`;
    report("statistics", { table, key: name, problem, remedy });
  }
  await checkPgIndexes(context);
}

// The pages of B-trees, where the extension amcheck is installed and its functions may be called.
async function checkPgIndexes({ db, report, leaveOut, progress }: CheckContext): Promise<void> {
  const installed = await db.all(sql`select 1 from pg_extension where extname = 'amcheck'`);
  if (installed.length === 0) {
    leaveOut("the pages of indexes: the extension amcheck is not installed");
    return;
  }
  const indexes = await db.all<Named & { oid: number }>(sql`
    select c.relname as "table", i.relname as name, i.oid::int as oid from pg_index x
    join pg_class c on c.oid = x.indrelid join pg_class i on i.oid = x.indexrelid join pg_am a on a.oid = i.relam
    where c.relnamespace = ${pgSchema} and a.amname = 'btree' and x.indisvalid order by 1, 2`);
  for (const { table, name, oid } of indexes) {
    progress(name);
    try {
      await db.tryAll(sql`select bt_index_check(${oid}::int::oid::regclass)`);
    } catch (error) {
      const { message, code } = ((error as Error).cause ?? error) as Error & { code?: string };
      if (code === "42501") {
        leaveOut("the pages of indexes: this user may not call bt_index_check");
        return;
      }
      report("pages", { table, key: name, problem: message, remedy: `REINDEX INDEX ${name}` });
    }
  }
}
