// Data directories of any size, created in seconds and kept between runs.
//
//   node --import tsx bench/seed.ts [--rows 100000] [--clean]
import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { isDeepStrictEqual, parseArgs } from "node:util";
import { openInstallation } from "../src/app/installation.js";
import { resolveSettings } from "../src/config/config.js";
import { builtinRoleUid } from "../src/kernel/ids.js";
import { rootOf } from "../src/kernel/uidp.js";
import { type GroupRow, groupKind } from "../src/store/iam/groups.js";
import { identityKind } from "../src/store/iam/identities.js";
import { type RoleBindingRow, roleBindingKind } from "../src/store/iam/role-bindings.js";
import { counterOf } from "../src/store/lists/resource.js";
import { openDatabase, type SqliteDatabase } from "../src/store/sqlite/driver.js";
import { openSqlite } from "../src/store/sqlite/open.js";
import { bindingRow, identityRow } from "../test/support/rows.js";
import { buildTree, groupsOf, type Tree } from "./tree.js";

/** The number of identities; the last one is for experiments, all others are for load. */
export const IDENTITIES = 1_001;

/** A data directory full of groups. */
export interface Seeded {
  readonly directory: string;
  readonly tree: Tree;
}

const PREFIX = "arbor-bench-";

/**
 * The data directory with this many groups, created unless an earlier run has. A change of
 * the schema or of the seeding creates a new one.
 */
export async function seed(groups: number): Promise<Seeded> {
  const tree = buildTree(groups);
  const directory = join(tmpdir(), `${PREFIX}${groups}-${fingerprint()}`);
  const done = join(directory, "seeded");
  if (!existsSync(done)) {
    rmSync(directory, { recursive: true, force: true });
    const startMs = performance.now();
    // Once through the front door, so that schema, keys and roles are the service's own.
    const settings = resolveSettings({ flags: { data: directory }, env: {} });
    await (await openInstallation({ mode: "create", settings, exclusive: true })).close();
    fill(join(directory, "arbor.db"), tree);
    await addReaders(directory, tree);
    await verify(directory, tree);
    writeFileSync(done, "");
    const seconds = ((performance.now() - startMs) / 1000).toFixed(1);
    const megabytes = Math.round(statSync(join(directory, "arbor.db")).size / 1e6);
    console.log(`seeded ${groups} groups in ${seconds} s (${megabytes} MB): ${directory}`);
  }
  return { directory, tree };
}

/** The uid of the nth identity. */
export function identityUid(tree: Tree, n: number): string {
  return `${tree.root}/${(n + 1).toString(16).padStart(16, "0")}`;
}

/** The groups of the first level, sorted. */
export function firstLevel({ directory, tree }: Seeded): string[] {
  const db = openDatabase(join(directory, "arbor.db"), { readonly: true });
  try {
    return db.prepare("SELECT uid FROM groups WHERE parent_uid = ? ORDER BY uid").pluck().all(tree.root) as string[];
  } finally {
    db.close();
  }
}

/**
 * The group in which the nth identity is a viewer: the root for every other one, and the groups of the
 * first level for the rest.
 */
export function groupOfIdentity(tree: Tree, level: readonly string[], n: number): string {
  return n % 2 === 0 ? tree.root : (level[((n - 1) / 2) % level.length] ?? tree.root);
}

/** The role binding of the nth identity. */
export function readerBinding(tree: Tree, level: readonly string[], n: number): RoleBindingRow {
  const groupUid = groupOfIdentity(tree, level, n);
  const uid = `${groupUid}/b${(n + 1).toString(16).padStart(15, "0")}`;
  return bindingRow(uid, identityUid(tree, n), builtinRoleUid("viewer"), { groupUid });
}

// Without a journal, and index by index in key order, this takes seconds in place of minutes. A crash leaves an
// incomplete directory, which the next run deletes.
function fill(file: string, tree: Tree): void {
  const db = openDatabase(file);
  for (const pragma of [
    "journal_mode = OFF",
    "synchronous = OFF",
    "locking_mode = EXCLUSIVE",
    "cache_size = -400000",
  ]) {
    db.pragma(pragma);
  }
  const indexes = db
    .prepare("SELECT name, sql FROM sqlite_schema WHERE type = 'index' AND tbl_name = 'groups' AND sql IS NOT NULL")
    .all() as { name: string; sql: string }[];
  db.exec("BEGIN IMMEDIATE");
  for (const { name } of indexes) db.exec(`DROP INDEX ${name}`);
  const insert =
    db.prepare(`INSERT INTO groups (uid, parent_uid, root_uid, name, description, verified, kind, resource_limits, create_time_ms, update_time_ms)
     VALUES (?, ?, ?, ?, ?, 0, 0, '{}', ?, ?)`);
  for (const { uid, parentUid, name, description, createTimeMs, updateTimeMs } of groupsOf(tree)) {
    insert.run(uid, parentUid, rootOf(uid), name, description, createTimeMs, updateTimeMs);
  }
  for (const { sql } of indexes) db.exec(sql);
  fillCounters(db);
  db.exec("COMMIT");
  db.pragma("journal_mode = WAL");
  db.close();
}

// A uid of n characters has (n - 40) / 17 ancestors.
function fillCounters(db: SqliteDatabase): void {
  db.exec(`INSERT INTO counters (scope, counter, slot, n)
    SELECT substr(uid, 1, 40 + 17 * depth.value), ${counterOf(groupKind, "below")}, 0, count(*)
    FROM groups JOIN json_each('[0,1,2]') depth ON length(uid) > 40 + 17 * depth.value GROUP BY 1 ORDER BY 1`);
  db.exec(`INSERT INTO counters (scope, counter, slot, n)
    SELECT parent_uid, ${counterOf(groupKind, "children")}, 0, count(*) FROM groups WHERE parent_uid IS NOT NULL
    GROUP BY 1 ORDER BY 1`);
}

// Few enough for the store's own inserts.
async function addReaders(directory: string, tree: Tree): Promise<void> {
  const level = firstLevel({ directory, tree });
  const store = openSqlite({ directory });
  try {
    await store.write(async (tx) => {
      for (let n = 0; n < IDENTITIES; n++) {
        const uid = identityUid(tree, n);
        await tx.table(identityKind).insert(identityRow(uid, { name: `reader ${n}` }));
        await tx.table(roleBindingKind).insert(readerBinding(tree, level, n));
      }
    });
  } finally {
    await store.close();
  }
}

// The counters of the ancestors of a group.
function countersOf(db: SqliteDatabase, uid: string): unknown[] {
  return db
    .prepare(`SELECT counter, scope, n FROM counters
      WHERE scope IN (SELECT substr(?, 1, 40 + 17 * value) FROM json_each('[0,1,2]')) ORDER BY 1, 2`)
    .all(uid);
}

// The store itself must confirm totals, pages and counters of a group, which it removes and adds again.
async function verify(directory: string, tree: Tree): Promise<void> {
  const store = openSqlite({ directory });
  const db = openDatabase(join(directory, "arbor.db"), { readonly: true });
  const check = (what: string, found: unknown, expected: unknown) => {
    if (!isDeepStrictEqual(found, expected)) {
      throw new Error(`${what}: ${JSON.stringify(found)} is not ${JSON.stringify(expected)}`);
    }
  };
  try {
    const [first = ""] = firstLevel({ directory, tree });
    const subtrees = [
      [tree.root, tree.belowRoot],
      [first, tree.belowFirst],
    ] as const;
    for (const [scope, expected] of subtrees) {
      for (const [field, column] of [
        ["name", "name"],
        ["created_at", "create_time_ms"],
        ["updated_at", "update_time_ms"],
      ]) {
        const order = { field: field ?? "", descending: false };
        const query = { visible: [tree.root], filter: { descendantsOf: scope }, order, skip: 7, limit: 50 };
        const page = await store.read((tx) => tx.table(groupKind).list(query));
        check(`total below ${scope}`, page.total, expected);
        const sql = `SELECT uid FROM groups WHERE uid > ? AND uid < ? ORDER BY ${column}, uid LIMIT 50 OFFSET 7`;
        check(
          `page by ${field}`,
          page.rows.map(({ uid }) => uid),
          db.prepare(sql).pluck().all(`${scope}/`, `${scope}0`),
        );
      }
    }
    const order = { field: "name", descending: false };
    const query = { visible: [tree.root], filter: { childrenOf: first }, order, skip: 0, limit: 1 };
    check("children", (await store.read((tx) => tx.table(groupKind).list(query))).total, tree.fanOut);

    const leaf = String(db.prepare("SELECT max(uid) FROM groups WHERE uid < ?").pluck().get(`${tree.root}0`));
    const before = countersOf(db, leaf);
    const row = (await store.read((tx) => tx.table(groupKind).find(leaf))) as GroupRow;
    await store.write((tx) => tx.table(groupKind).delete(row.uid));
    if (isDeepStrictEqual(countersOf(db, leaf), before)) throw new Error("a deletion changes no counter");
    await store.write((tx) => tx.table(groupKind).insert(row));
    check("counters after a group was put back", countersOf(db, leaf), before);
  } finally {
    db.close();
    await store.close();
  }
}

function fingerprint(): string {
  const hash = createHash("sha256");
  const migrations = new URL("../src/store/migrations/sqlite/", import.meta.url);
  for (const name of readdirSync(migrations).sort()) {
    if (name.endsWith(".sql")) hash.update(readFileSync(new URL(name, migrations)));
  }
  for (const name of ["tree", "seed"]) hash.update(readFileSync(new URL(`./${name}.ts`, import.meta.url)));
  return hash.digest("hex").slice(0, 8);
}

function clean(): void {
  for (const name of readdirSync(tmpdir())) {
    if (name.startsWith(PREFIX)) rmSync(join(tmpdir(), name), { recursive: true, force: true });
  }
}

if (process.argv[1] === new URL(import.meta.url).pathname) {
  const { values } = parseArgs({
    options: { rows: { type: "string", default: "100000" }, clean: { type: "boolean" } },
  });
  if (values.clean) clean();
  else console.log((await seed(Number(values.rows))).directory);
}
