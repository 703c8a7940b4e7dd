// The plans that PostgreSQL makes for all statements of the store: with tables that are empty, and with columns and tables
// of which it knows nothing, something old, or everything.
import assert from "node:assert/strict";
import { test } from "node:test";
import { drizzle } from "drizzle-orm/node-postgres";
import type pg from "pg";
import { escapeLiteral } from "pg";
import { verifyServer } from "../../src/store/pg/connection.js";
import { openPg } from "../../src/store/pg/open.js";
import type { Sql } from "../../src/store/statement.js";
import { schema } from "../../src/store/tables/schema-pg.js";
import {
  type Exceptions,
  findUnexpected,
  listStatements,
  type PlannedStatement,
  ROOT,
  type StatementParam,
  scans,
  sorts,
  useFamilies,
} from "../store/statement-plans.js";
import { newDatabase, withClient } from "./databases.js";

/** Statements with other plans for an empty table, and why either is good. */
const changing: Exceptions = [
  [/^select .* from "identities" left join .*"group_uid" in \(/, "groups one by one, or what an identity has"],
  [/ from "event_positions" .*exists \(select "seq" from "event_deliveries"/, "keys of what waits, in either order"],
  [/ from "external_group_role_mappings" inner join "roles"/, "by the key, or by the provider and the key"],
  [/ from "scim_users" where \([^()]*"user_name_key" = \$2\)$/, "by the name, or in an empty table by the provider"],
];

/** Registers the tests, which know the statements that ran before them in this process. */
export function statementPlanSuite(): void {
  test("each statement of the store has one plan that reads indexes, whatever PostgreSQL knows of its tables", async () => {
    const store = await openPg({ url: await newDatabase() });
    await useFamilies(store);
    await store.close();
    await withClient(await newDatabase(), async (client) => {
      await avoidPlans(client);
      await client.query("SET session_replication_role = replica");
      const statements = listStatements({
        sql: drizzle(client) as unknown as Sql,
        tables: schema,
      });
      // The server must not gather statistics by itself meanwhile.
      const listed = await client.query("SELECT tablename AS name FROM pg_tables WHERE schemaname = 'public'");
      for (const { name } of listed.rows) await client.query(`ALTER TABLE ${name} SET (autovacuum_enabled = off)`);

      const empty = await readPlans(client, statements);
      await fillTables(client, 1, 200);
      await client.query("ANALYZE");
      await fillTables(client, 201, 4_000);
      const stale = await readPlans(client, statements);
      await client.query("VACUUM (ANALYZE)");
      const { rowCount } = await client.query("SELECT FROM pg_stats WHERE schemaname = 'public'");
      assert.equal(rowCount, 0, "no column has statistics");
      const fresh = await readPlans(client, statements);
      await client.query(
        `UPDATE pg_class SET reltuples = -1, relpages = 0, relallvisible = 0 WHERE relnamespace = 'public'::regnamespace`,
      );
      const none = await readPlans(client, statements);

      const all = statements.map(({ sql }, i) => ({
        sql,
        plans: [empty, stale, fresh, none].map((plans) => plans[i] ?? ""),
      }));
      const doing = (matches: (plans: readonly string[]) => boolean) =>
        all.filter(({ plans }) => matches(plans)).map(({ sql }) => sql);
      const describe = (found: readonly string[]) =>
        found.map((sql) => [sql, ...new Set(all.find((one) => one.sql === sql)?.plans)].join("\n  "));
      const assertNone = (found: readonly string[]) => assert.deepEqual(describe(found), []);
      assertNone(
        findUnexpected(
          "PostgreSQL",
          doing((plans) => new Set(plans).size > 1),
          changing,
        ),
      );
      assertNone(
        findUnexpected(
          "PostgreSQL",
          doing((plans) => plans.some((plan) => /Seq Scan|whole/.test(plan))),
          scans,
        ),
      );
      assertNone(
        findUnexpected(
          "PostgreSQL",
          doing((plans) => plans.some((plan) => /Sort/.test(plan))),
          sorts,
        ),
      );

      await client.query("RESET ALL");
      const usual = await readPlans(client, statements);
      const scanning = statements.filter((_, i) => /Seq Scan/.test(usual[i] ?? ""));
      assert.ok(scanning.length > 20, `control: without the settings ${scanning.length} scan tables`);
    });
  });
}

function avoidPlans(client: pg.Client): Promise<void> {
  return new Promise((resolve, reject) => verifyServer(client, (error) => (error ? reject(error) : resolve())));
}

// Inserts rows with these numbers into every table. Columns that make keys unique vary, others have a few values.
async function fillTables(client: pg.Client, from: number, to: number): Promise<void> {
  const { rows: columns } = await client.query<TableColumn>(`
    SELECT c.relname AS "table", a.attname AS name, format_type(a.atttypid, NULL) AS type, a.attnotnull AS "isRequired",
      EXISTS (SELECT FROM pg_index i WHERE i.indrelid = c.oid AND i.indisunique
        AND i.indkey[i.indnkeyatts - 1] = a.attnum) AS "isUnique"
    FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
    WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r' AND a.attnum > 0 AND NOT a.attisdropped
      AND a.attgenerated = ''`);
  for (const table of new Set(columns.map((column) => column.table))) {
    const own = columns.filter((column) => column.table === table);
    const names = own.map(({ name }) => `"${name}"`);
    await client.query(
      `INSERT INTO "${table}" (${names}) SELECT ${own.map(buildValue)} FROM generate_series(${from}, ${to}) n`,
    );
  }
}

interface TableColumn {
  readonly table: string;
  readonly name: string;
  readonly type: string;
  readonly isRequired: boolean;
  readonly isUnique: boolean;
}

function buildValue({ table, name, type, isRequired, isUnique }: TableColumn): string {
  const root = escapeLiteral(ROOT);
  const texts = isUnique
    ? `${root} || '/' || lpad(to_hex(n), 16, '0')`
    : /uid|scope/.test(name)
      ? `CASE WHEN n % 10 < 8 THEN ${root} ELSE lpad(to_hex(n % 50), 40, 'f') END`
      : "'v' || n % 20";
  const values: Readonly<Record<string, string>> = {
    text: texts,
    bigint: "n",
    integer: isUnique ? "n" : "n % 4",
    boolean: "n % 2 = 0",
    jsonb: "'[]'",
  };
  const value = values[type];
  assert.ok(value, `${table}.${name} is of the type ${type}`);
  return isRequired ? value : `CASE WHEN n % 10 < 9 THEN ${value} END`;
}

async function readPlans(client: pg.Client, statements: readonly PlannedStatement[]): Promise<string[]> {
  const plans: string[] = [];
  for (const { sql, params } of statements) {
    await client.query(`PREPARE planned AS ${sql}`);
    const { rows: prepared } = await client.query<{ types: string[] }>(
      "SELECT parameter_types::text[] AS types FROM pg_prepared_statements WHERE name = 'planned'",
    );
    const values = params.map((param, i) => escapeLiteral(chooseValue(param, prepared[0]?.types[i])));
    const { rows } = await client.query(
      `EXPLAIN (FORMAT JSON) EXECUTE planned${values.length > 0 ? `(${values})` : ""}`,
    );
    await client.query("DEALLOCATE planned");
    plans.push(describePlan(rows[0]["QUERY PLAN"][0].Plan));
  }
  return plans;
}

// Values do not matter to the plans, but to whether they are valid.
function chooseValue(param: StatementParam, type: string | undefined): string {
  if ("value" in param) return typeof param.value === "object" ? JSON.stringify(param.value) : String(param.value);
  if (type === "boolean") return "true";
  if (type === "jsonb") return "[]";
  return type === "text" ? ROOT : "7";
}

interface PlanNode {
  readonly "Node Type": string;
  readonly "Relation Name"?: string;
  readonly "Index Name"?: string;
  readonly "Index Cond"?: string;
  readonly Plans?: readonly PlanNode[];
}

// An index scan and one of the index alone read the same entries. What is kept in memory is read once in either case.
function describePlan(node: PlanNode): string {
  const { "Node Type": type, "Relation Name": table, "Index Name": index, "Index Cond": condition, Plans = [] } = node;
  const inner = Plans.map(describePlan).join(", ");
  if (/^(Materialize|Memoize)$/.test(type)) return inner;
  const isWhole = /^Index (Only )?Scan$/.test(type) && condition === undefined;
  const words = [isWhole && "whole", type.replace("Only ", ""), index ?? table];
  return words.filter(Boolean).join(" ") + (inner && ` [${inner}]`);
}
