// Finds in the catalog of PostgreSQL what can change rows of the tables, or show others in their place. The migrations create
// nothing of it: what a migration of stored rows creates is known by its name while that migration runs.
import { getTableConfig } from "drizzle-orm/sqlite-core";
import type { DatabaseState } from "../migrate/state.js";
import { tables } from "./database.js";
import type { RunQuery, UnknownObject } from "./unknown-object.js";

const quote = (text: string) => `'${text.replaceAll("'", "''")}'`;
const ownTables = tables.map((table) => getTableConfig(table).name);

/** Oids below it are those of PostgreSQL itself (FirstNormalObjectId). */
const FIRST_OID = 16_384;
/** The longest name in bytes (NAMEDATALEN). */
const MAX_NAME = 63;

const listNames = (names: readonly string[]) => names.map(quote).join(", ") || "''";

// The tables that queries read, and what is beside them and beside the record of changes. The first schema of the search path may
// be another one. Extensions have created what depends on them; an object in the place of a table is none of theirs.
const COMMON = `WITH own AS (
    SELECT c.* FROM unnest(ARRAY[${listNames(ownTables)}]) n JOIN pg_class c ON c.oid = to_regclass(n)
  ), spaces AS (
    SELECT relnamespace AS oid FROM own UNION SELECT oid FROM pg_namespace WHERE nspname = 'drizzle'
  ), relations AS (
    SELECT c.* FROM pg_class c JOIN spaces s ON s.oid = c.relnamespace
  ), extended AS (
    SELECT classid, objid FROM pg_depend WHERE deptype = 'e' AND NOT EXISTS (
      SELECT FROM own c WHERE classid = 'pg_class'::regclass AND c.oid = objid)
  )`;

// Each query has the columns "table", name and problem.
const OBJECTS: readonly string[] = [
  // Triggers of constraints are internal, and run functions of PostgreSQL.
  `SELECT c.relname AS "table", t.tgname AS name, 'no migration creates this trigger' AS problem
   FROM pg_trigger t JOIN relations c ON c.oid = t.tgrelid WHERE NOT t.tgisinternal OR t.tgfoid >= ${FIRST_OID}`,
  // The rule of a view is the view.
  `SELECT c.relname AS "table", r.rulename AS name, 'no migration creates this rule' AS problem
   FROM pg_rewrite r JOIN relations c ON c.oid = r.ev_class WHERE r.rulename <> '_RETURN'
   AND NOT EXISTS (SELECT FROM extended e WHERE e.classid = 'pg_class'::regclass AND e.objid = c.oid)`,
  `SELECT c.relname AS "table", c.relname AS name, 'no migration creates this ' || CASE c.relkind WHEN 'v' THEN 'view'
   WHEN 'm' THEN 'materialized view' WHEN 'f' THEN 'foreign table' ELSE 'partitioned table' END AS problem
   FROM relations c WHERE c.relkind IN ('v', 'm', 'f', 'p')
   AND NOT EXISTS (SELECT FROM extended e WHERE e.classid = 'pg_class'::regclass AND e.objid = c.oid)`,
  `SELECT c.relname AS "table", p.polname AS name, 'no migration creates this policy' AS problem
   FROM pg_policy p JOIN relations c ON c.oid = p.polrelid`,
  `SELECT c.relname AS "table", c.relname AS name, 'row security hides rows of the table' AS problem
   FROM own c WHERE c.relrowsecurity`,
  // Queries of a table show the rows of those that inherit from it.
  `SELECT c.relname AS "table", i.inhrelid::regclass::text AS name, 'the rows of this table are shown as those of the other' AS problem
   FROM pg_inherits i JOIN own c ON c.oid = i.inhparent`,
  `SELECT c.relname AS "table", c.oid::regclass::text AS name, 'it is in another schema than the table settings' AS problem
   FROM own c JOIN own s ON s.relname = 'settings' AND s.relnamespace <> c.relnamespace
   WHERE c.relname IN (${listNames(tables.map((table) => getTableConfig(table).name))})`,
  `SELECT c.relname AS "table", c.relname AS name, 'a crash of the server empties the table' AS problem
   FROM own c WHERE c.relkind = 'r' AND c.relpersistence <> 'p'`,
  `SELECT c.relname AS "table", k.conname AS name, 'no migration creates this constraint, which changes rows' AS problem
   FROM pg_constraint k JOIN relations c ON c.oid = k.conrelid
   WHERE k.contype = 'f' AND (k.confdeltype IN ('c', 'n', 'd') OR k.confupdtype IN ('c', 'n', 'd'))
   AND NOT (k.confupdtype NOT IN ('c', 'n', 'd') AND c.relname || ' ' || k.conname IN (${listNames(listCascades())}))`,
  // Whatever it calls: functions of PostgreSQL run queries as well.
  `SELECT c.relname AS "table", k.conname AS name, 'no migration creates this constraint' AS problem
   FROM pg_constraint k JOIN own c ON c.oid = k.conrelid WHERE k.contype IN ('c', 'x')`,
  // Domains call functions, and the comparison of others may hold other values to be the same.
  `SELECT c.relname AS "table", a.attname AS name, 'its type or collation is not one of PostgreSQL' AS problem
   FROM own c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
   WHERE a.atttypid >= ${FIRST_OID} OR a.attcollation >= ${FIRST_OID}`,
  `SELECT c.relname AS "table", i.relname AS name, 'it calls the function ' || p.proname AS problem
   FROM pg_depend d JOIN pg_proc p ON d.refclassid = 'pg_proc'::regclass AND p.oid = d.refobjid AND p.oid >= ${FIRST_OID}
   JOIN pg_index x ON d.classid = 'pg_class'::regclass AND x.indexrelid = d.objid
   JOIN pg_class i ON i.oid = x.indexrelid JOIN own c ON c.oid = x.indrelid`,
  // A server that writes rows here by logical replication.
  `SELECT c.relname AS "table", 'subscription ' || r.srsubid AS name, 'logical replication writes to the table' AS problem
   FROM pg_subscription_rel r JOIN own c ON c.oid = r.srrelid`,
  `SELECT 'operators' AS "table", o.oid::regoperator::text AS name, 'it may replace an operator of PostgreSQL' AS problem
   FROM pg_operator o JOIN spaces s ON s.oid = o.oprnamespace WHERE o.oid >= ${FIRST_OID}
   AND NOT EXISTS (SELECT FROM extended e WHERE e.classid = 'pg_operator'::regclass AND e.objid = o.oid)`,
  `SELECT 'casts' AS "table", k.castsource::regtype || ' as ' || k.casttarget::regtype AS name,
   'it converts values that others compare or store' AS problem
   FROM pg_cast k WHERE k.oid >= ${FIRST_OID} AND k.castcontext <> 'e'
   AND k.castsource < ${FIRST_OID} AND k.casttarget < ${FIRST_OID}
   AND NOT EXISTS (SELECT FROM extended e WHERE e.classid = 'pg_cast'::regclass AND e.objid = k.oid)`,
  `SELECT 'search_path' AS "table", current_setting('search_path') AS name,
   'functions of other schemas stand before those of PostgreSQL' AS problem
   WHERE (current_schemas(true))[1] <> 'pg_catalog' AND (current_schemas(true))[1] NOT LIKE 'pg\\_temp%'`,
  `SELECT 'session_replication_role' AS "table", current_setting('session_replication_role') AS name,
   'foreign keys are not enforced' AS problem WHERE current_setting('session_replication_role') <> 'origin'`,
  `SELECT 'event triggers' AS "table", evtname AS name, 'it runs with each login' AS problem
   FROM pg_event_trigger WHERE evtevent = 'login' AND evtenabled <> 'D'`,
];

const VALUES = `${COMMON}
  SELECT c.relname AS "table", a.attname AS name, a.attgenerated <> '' OR a.attidentity <> '' AS computed,
  coalesce(pg_get_expr(d.adbin, d.adrelid), '') AS value
  FROM own c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
  LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
  WHERE d.oid IS NOT NULL OR a.attidentity <> ''`;

const NOTES = `SELECT evtname AS name FROM pg_event_trigger WHERE evtevent <> 'login' AND evtenabled <> 'D' ORDER BY 1`;

/** Finds the objects in the schema of the tables, and in that of the record of changes. */
export async function findPgObjects(state: DatabaseState, query: RunQuery): Promise<readonly UnknownObject[]> {
  const known = listKnownTriggers(state);
  const found = (
    await query(
      `${COMMON} ${OBJECTS.map((one) => `SELECT "table"::text, name::text, problem::text FROM (${one}) o`).join("\nUNION ALL ")}`,
    )
  ).map(toUnknown);
  const unknown = found.filter(({ name, problem }) => !(problem.endsWith("trigger") && known.includes(name)));
  const values = await query(VALUES);
  const computed = values.filter((row) => row.computed || !isDeclaredDefault(row as unknown as StoredDefault));
  return [
    ...unknown,
    ...computed.map((row) => toUnknown({ ...row, problem: "no migration gives the column this value" })),
  ];
}

/** Lists event triggers, which run when tables are created or changed. Providers of PostgreSQL have some of their own. */
export async function listPgNotes(query: RunQuery): Promise<readonly string[]> {
  const rows = await query(NOTES);
  return rows.map(({ name }) => `the event trigger ${name} runs with statements that change tables`);
}

function toUnknown({ table, name, problem }: Readonly<Record<string, unknown>>): UnknownObject {
  return { table: String(table), name: String(name), problem: String(problem) };
}

// Those of migrations of stored rows that have begun and not ended.
function listKnownTriggers({ data }: DatabaseState): readonly string[] {
  return data
    .filter(({ phase }) => phase !== "missing" && phase !== "contracted")
    .flatMap(({ migration }) => migration.begin("pg"))
    .flatMap((statement) => /^\s*CREATE (?:CONSTRAINT )?TRIGGER "?(\w+)/i.exec(statement)?.[1] ?? []);
}

interface StoredDefault {
  readonly table: string;
  readonly name: string;
  /** The expression. */
  readonly value: string;
}

function isDeclaredDefault({ table, name, value }: StoredDefault): boolean {
  const declared = tables.find((one) => getTableConfig(one).name === table);
  const column = declared && getTableConfig(declared).columns.find((one) => one.name === name);
  // A column of a newer version, whose default this one does not know. Only a constant runs nothing.
  if (column === undefined) return /^('([^']|'')*'|-?\d+|true|false)(::[\w ]+)?$/.test(value);
  if (column.primary && /^nextval\b/.test(value)) return /^nextval\('("?)[\w.]+\1'::regclass\)$/.test(value);
  const text = /^'((?:[^']|'')*)'(?:::[\w ]+)?$/.exec(value)?.[1] ?? value;
  const declaredText = typeof column.default === "object" ? JSON.stringify(column.default) : String(column.default);
  return column.hasDefault && declaredText === text;
}

// Foreign keys that delete rows, as the migrations create them: TABLE NAME. PostgreSQL cuts names.
function listCascades(): string[] {
  return tables
    .map(getTableConfig)
    .flatMap(({ name, foreignKeys }) =>
      foreignKeys
        .filter(({ onDelete }) => onDelete !== undefined && onDelete !== "no action")
        .map((key) => `${name} ${key.getName().slice(0, MAX_NAME)}`),
    );
}
