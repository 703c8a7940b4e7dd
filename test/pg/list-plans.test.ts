// Lists on PostgreSQL are read by indexes, and sort a bounded number of rows, whatever statistics there are. Needs
// TEST_ARBOR_DATABASE_URL, which `npm run test:pg` sets.
import assert from "node:assert/strict";
import { test } from "node:test";
import { drizzle } from "drizzle-orm/node-postgres";
import pg from "pg";
import { verifyServer } from "../../src/store/pg/connection.js";
import { openPg } from "../../src/store/pg/open.js";
import type { Sql } from "../../src/store/statement.js";
import { schema } from "../../src/store/tables/schema-pg.js";
import { collectStatements, fillWorlds, type ListStatement } from "../store/list-plans.js";
import { newDatabase } from "./databases.js";

const limits = { step: 5, slice: 4 };

/** A node of a plan, as far as it is checked. */
interface PlanNode {
  readonly "Node Type": string;
  readonly "Relation Name"?: string;
  readonly "Index Cond"?: string;
  readonly "Actual Rows": number;
  readonly "Rows Removed by Filter"?: number;
  readonly Plans?: readonly PlanNode[];
}

for (const statistics of ["none", "stale", "fresh"]) {
  test(`no list scans a table, and sorts are bounded, with ${statistics} statistics`, async (t) => {
    const url = await newDatabase();
    const store = await openPg({ url });
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    t.after(async () => {
      await store.close();
      await client.end();
    });
    // The server must not gather them by itself meanwhile.
    const listed = await client.query("SELECT tablename AS name FROM pg_tables WHERE schemaname = 'public'");
    for (const { name } of listed.rows) await client.query(`ALTER TABLE ${name} SET (autovacuum_enabled = off)`);
    const worlds = await fillWorlds(
      store,
      async () => void (statistics === "stale" && (await client.query("ANALYZE"))),
    );
    if (statistics === "fresh") await client.query("ANALYZE");
    const dialect = { sql: drizzle(client) as unknown as Sql, tables: schema };
    const statements = await collectStatements(store, worlds, dialect, limits, 200);

    assert.ok((await findFaults(client, statements)).faults.length > 0, "control: without the settings of the service");
    await new Promise<void>((resolve, reject) => {
      verifyServer(client, (error) => (error ? reject(error) : resolve()));
    });
    const { faults, sorts } = await findFaults(client, statements);
    assert.deepEqual(faults, []);
    assert.ok(sorts > 20, `${sorts} plans sort`);
  });
}

// Finds plans that scan a table, or sort more rows than the counters allow.
async function findFaults(client: pg.Client, statements: readonly ListStatement[]) {
  const faults: string[] = [];
  let sorts = 0;
  for (const { sql, values, limit } of statements) {
    for (const mode of ["force_custom_plan", "force_generic_plan"]) {
      await client.query(`SET plan_cache_mode = ${mode}`);
      await client.query(`PREPARE listed AS ${sql}`);
      const literals = values.map((value) => pg.escapeLiteral(String(value))).join(", ");
      const { rows } = await client.query(
        `EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) EXECUTE listed${literals && `(${literals})`}`,
      );
      await client.query("DEALLOCATE listed");
      for (const node of nodesOf(rows[0]["QUERY PLAN"][0].Plan)) {
        const type = node["Node Type"];
        const [input] = node.Plans ?? [];
        const examined = (input?.["Actual Rows"] ?? 0) + (input?.["Rows Removed by Filter"] ?? 0);
        const isScan = type === "Seq Scan" || (/^Index( Only)? Scan$/.test(type) && !node["Index Cond"]);
        // The page itself is sorted, with one row more.
        const isLong = /Sort$/.test(type) && examined > Math.max(limits.slice, limit + 1);
        if (/Sort$/.test(type)) sorts++;
        if (isScan || isLong) faults.push(`${mode}: ${type} of ${examined} rows: ${sql}`);
      }
    }
  }
  return { faults, sorts };
}

function nodesOf(node: PlanNode): PlanNode[] {
  return [node, ...(node.Plans ?? []).flatMap(nodesOf)];
}
