// What no index of the audit log finds alone is read in slices, between which the event loop may do something else.
import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import type { AuditEventQuery } from "../../src/store/audit/events.js";
import { AuditEvents } from "../../src/store/audit/events.js";
import { createExecutor } from "../../src/store/sqlite/connection.js";
import { openDatabase } from "../../src/store/sqlite/driver.js";
import { openSqlite } from "../../src/store/sqlite/open.js";
import type { Executor } from "../../src/store/statement.js";
import { isCampaign } from "../support/scale.js";
import { tempDir } from "../support/temp-dir.js";

const ROWS = 12_000;
const SLICE_ROWS = 256;
const SLICE_MS = 20;

test("a page of a filter without an index reads few rows between two pauses, and not all rows", async () => {
  const directory = tempDir();
  await openSqlite({ directory }).close();
  const db = openDatabase(join(directory, "arbor.db"));
  db.exec(
    `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${ROWS})
     INSERT INTO audit (root_uid, time_ms, type, method, subject_uid, actor_uid, token_id, request_id, remote_address)
     SELECT 'root', i, 'type', 'method', 'root', 'actor', '', 'request', '' FROM n`,
  );
  const connection = createExecutor(db);
  const slices: { rows: number; ms: number }[] = [];
  let slice = { rows: 0, ms: 0 };
  let startMs = performance.now();
  const endSlice = () => {
    slices.push({ ...slice, ms: performance.now() - startMs });
    slice = { rows: 0, ms: 0 };
    startMs = performance.now();
  };
  const counted: Executor = {
    ...connection,
    rows: (statement, params, take) =>
      connection.rows(statement, params, (found) => {
        slice.rows += found.length;
        return take === undefined ? (found as never) : take(found);
      }),
    async pause() {
      endSlice();
    },
  };
  const query: AuditEventQuery = {
    ...{ rootUid: "root", by: undefined, startMs: 0, endMs: 1e12, descending: true, after: undefined, limit: 50 },
    matches: () => false,
    assertInTime: () => {},
  };
  const page = await new AuditEvents(counted).list(query);
  endSlice();
  db.close();
  assert.deepEqual(page.rows, []);
  assert.ok(page.next !== undefined, "it ends although there are more rows");
  const read = slices.reduce((sum, { rows }) => sum + rows, 0);
  assert.ok(read > 10_000 && read < ROWS, `${read} rows`);
  assert.ok(Math.max(...slices.map(({ rows }) => rows)) <= SLICE_ROWS, JSON.stringify(slices));
  // Times are judged where the machine does nothing else.
  if (isCampaign) assert.ok(Math.max(...slices.map(({ ms }) => ms)) <= SLICE_MS, JSON.stringify(slices));
});
