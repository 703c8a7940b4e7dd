// A page of 50 role bindings with their joins, of 100,000: the first page against
// the last, and the number of statements per page:
//
//   node --import tsx bench/bindings.ts
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { groupKind } from "../src/store/iam/groups.js";
import { identityKind } from "../src/store/iam/identities.js";
import { roleBindingKind } from "../src/store/iam/role-bindings.js";
import { roleKind } from "../src/store/iam/roles.js";
import type { ListPosition, ListQuery } from "../src/store/lists/query.js";
import { openSqlite } from "../src/store/sqlite/open.js";
import type { Store } from "../src/store/store.js";
import { bindingRow, childUid, groupRow, identityRow, roleRow, rootUid } from "../test/support/rows.js";

const COUNT = 100_000;
const REPEATS = 300;
const [root, role] = [rootUid(1), rootUid(2)];

const directory = mkdtempSync(join(tmpdir(), "arbor-bench-"));
const store = openSqlite({ directory });
try {
  await fill(store);
  for (const field of ["uid", "created_at"]) {
    const query = { visible: [root], filter: {}, order: { field, descending: false }, skip: 0, limit: 50 };
    const beforeLast = await store.read((tx) => tx.table(roleBindingKind).list({ ...query, skip: COUNT - 100 }));
    const first = await medianUs(store, { ...query });
    const last = await medianUs(store, { ...query, after: beforeLast.next as ListPosition });
    console.log(`${field}: first page ${first} us, last page ${last} us, last/first ${(last / first).toFixed(2)}`);
  }
} finally {
  await store.close();
  rmSync(directory, { recursive: true });
}

async function fill(to: Store): Promise<void> {
  await to.write(async (tx) => {
    await tx.table(groupKind).insert(groupRow(root));
    await tx.table(roleKind).insert(roleRow(role));
    for (let i = 0; i < 100; i++) await tx.table(groupKind).insert(groupRow(childUid(root, i)));
  });
  for (let start = 0; start < COUNT; start += 1_000) {
    await to.write(async (tx) => {
      for (let i = start; i < start + 1_000; i++) {
        const group = childUid(root, i % 100);
        const identity = childUid(group, 1_000_000 + i);
        await tx.table(identityKind).insert(identityRow(identity, { name: `identity ${i}` }));
        await tx
          .table(roleBindingKind)
          .insert(bindingRow(childUid(group, 5_000_000 + i), identity, role, { createTimeMs: i }));
      }
    });
  }
}

async function medianUs(from: Store, query: ListQuery): Promise<number> {
  const times: number[] = [];
  for (let i = 0; i < REPEATS; i++) {
    const startedAt = performance.now();
    const page = await from.read((tx) => tx.table(roleBindingKind).list(query));
    times.push((performance.now() - startedAt) * 1000);
    if (page.rows.length !== 50 || page.total !== COUNT) throw new Error(`${page.rows.length} rows of ${page.total}`);
    await new Promise((resolve) => setImmediate(resolve));
  }
  return Math.round(times.sort((a, b) => a - b)[REPEATS / 2] ?? 0);
}
