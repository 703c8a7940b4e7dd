// The migration of the families of tags, which either database must do: killed at any transaction, and beside a server of
// the version before, which knows the families 0 to 3 alone.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { describe, it } from "node:test";
import { counterCheck } from "../../../src/store/check/counters.js";
import type { CheckDatabase } from "../../../src/store/check/database.js";
import { runCheck } from "../../../src/store/check/findings.js";
import { groupKind } from "../../../src/store/iam/groups.js";
import type { MigrationDatabase } from "../../../src/store/migrate/data-migration.js";
import { contract, expand } from "../../../src/store/migrate/phases.js";
import { tagFamilies as migration } from "../../../src/store/migrate/tag-families.js";
import { repoKind } from "../../../src/store/registry/repos.js";
import { buildFamilySql, classifyTag, tagFamilies } from "../../../src/store/registry/tag-families.js";
import { type TagRow, tagKind } from "../../../src/store/registry/tags.js";
import type { Store } from "../../../src/store/store.js";
import type { Tx } from "../../../src/store/transaction.js";
import { createRandom } from "../../support/openapi/random.js";
import { childUid, groupRow, rootUid } from "../../support/rows.js";
import { repoRow, tagRow } from "../registry-suite.js";
import { BEFORE, setOldestVersion } from "./migration-suite.js";

const migrations = [migration];

/** One database. */
export interface TagDatabase {
  /** Opens it as a server does that does not know the migration. */
  openOldStore(): Promise<Store>;
  openMigration(): Promise<MigrationDatabase>;
  openCheck(): CheckDatabase | Promise<CheckDatabase>;
}

const root = rootUid(0x51);
const group = childUid(root, 1);
const repos = [childUid(root, 2), childUid(group, 3), childUid(childUid(group, 4), 5)];

/** As the version before classified tags. */
function classifyBefore(name: string): number {
  if (name.startsWith("sha256-")) return 1;
  if (/-20[0-9]{2}(?:0[1-9]|1[0-2])(?:0[1-9]|[12][0-9]|3[01])$/.test(name)) return 2;
  return /-r[0-9]+$/.test(name) ? 3 : 0;
}

const prefixes = ["", "", "", "sha256-"];
const versions = ["3.14.7", "1.2", "20260131", "latest", "v1", "0", "1.0-r3", "2-20260131"];
const suffixes = ["", "", "", "_git20260914", "_git", "_hg1_p2", "_github1", "_svn2x", "_alpha_cvs3", "_git.1"];
const ends = ["", "", "-dev", "-r0", "-r12", "-20260914", "-20261301", "-r", "-dev-r1"];

/** Names of all families, and some that nearly are of another. */
function createNames(count: number): string[] {
  const random = createRandom(3);
  const parts = [prefixes, versions, suffixes, ends];
  return Array.from({ length: count }, () => parts.map((some) => random.pick(some)).join(""));
}

/** How many tags there are at first: enough for some batches. */
const TAGS = 1_200;

/** Declares the tests. `create` creates an empty database. */
export function tagFamilySuite(name: string, create: () => Promise<TagDatabase>): void {
  describe(`${name}: the families of tags`, () => {
    it("are the same in SQL, whatever the name", async () => {
      const database = await create();
      await (await database.openOldStore()).close();
      const special = [
        "",
        "_git",
        "a_git",
        "1_git-",
        "1_git_",
        "1_gitt",
        "1_GIT1",
        "1_git1x",
        "1_git1x_git",
        "1_g1it",
        "1a_git",
      ];
      const names = [...new Set([...createNames(2_000), ...special])];
      const rows = await using(database, (open) =>
        open.read((tx) =>
          tx.query(
            `WITH names (name) AS (VALUES ${names.map((one) => `('${one}')`).join(", ")})
             SELECT name, ${buildFamilySql(tx.dialect, "name")} AS family FROM names`,
          ),
        ),
      );
      assert.equal(rows.length, names.length);
      assert.deepEqual(
        rows.filter((row) => Number(row.family) !== classifyTag(String(row.name))),
        [],
      );
      assert.equal(
        new Set(rows.map(({ family }) => Number(family))).size,
        tagFamilies.length,
        "there are names of each",
      );
    });

    it("are corrected with their counters, and what the version before writes meanwhile as well", async () => {
      const database = await createOld(create);
      assert.ok((await countFaults(database)) > 0, "control: without the migration there are faults");
      await using(database, (open) => expand(open, { migrations }));
      assert.equal(await countFaults(database), 0);

      const old = await database.openOldStore();
      await old.write(async (tx) => {
        for (const [i, one] of ["9.1", "9.1_git1", "9.1_git1-r1", "sha256-9-r1", "9.1-r1"].entries()) {
          await insertOld(tx, 6_000 + i * repos.length, one);
        }
        const tags = tx.table(tagKind);
        const repoUid = repos[0] ?? "";
        const find = async (one: string) => (await tags.findByName(repoUid, one)) as TagRow;
        const row = await find("9.1");
        await tags.replace({ ...row, digest: "sha256:moved" });
        for (const one of ["9.1_svn2", "sha256-9-20260131"]) {
          await tags.replace({ ...row, name: one, family: classifyBefore(one) });
          assert.equal((await find(one)).family, classifyTag(one), "a tag that it renames");
        }
        await tags.replace({ ...(await find("sha256-9-20260131")), digest: "sha256:moved" });
        await tags.delete((await find("sha256-9-20260131")).uid);
        await tags.deleteOf(repos[1] ?? "");
      });
      await old.close();
      assert.equal(await countFaults(database), 0);

      await using(database, (open) => contract(open, { migrations }));
      assert.equal(await countFaults(database), 0);
      const late = await database.openOldStore();
      await late.write((tx) => insertOld(tx, 7_200, "9.2_git1"));
      await late.close();
      assert.equal(await countFaults(database), 1, "control: after the contract phase nothing corrects them");
    });

    for (const end of ["before", "after"] as const) {
      it(`are corrected once, if the process ends ${end} the commit of any transaction`, async () => {
        const database = await createOld(create);
        let ends = 0;
        while (!(await reachesTheEnd(database, end, end === "before" && ends > 0 ? 1 : 0))) ends++;
        assert.ok(ends > 5, `${ends} processes ended`);
        assert.equal(await countFaults(database), 0);
      });
    }

    it("are those of the names in a new database, which needs no migration", async () => {
      const database = await create();
      await using(database, (open) => expand(open, { migrations }));
      await fill(database);
      assert.ok((await countFaults(database)) > 0, "nothing corrects what an older version writes");
    });
  });
}

// `arbor check` and other commands compare the triggers of a database that is not contracted with these statements.
it("the statements of the migration of the families of tags are those of version 1.12", () => {
  const text = JSON.stringify([migration.begin("sqlite"), migration.begin("pg")]);
  assert.equal(
    createHash("sha256").update(text).digest("hex"),
    "a837ef809182cf49fc904ca9958f0cc2079944a85829fcfea68e8a3fee7ae3b9",
  );
});

async function createOld(create: () => Promise<TagDatabase>): Promise<TagDatabase> {
  const database = await create();
  await fill(database);
  await using(database, (open) => setOldestVersion(open, BEFORE));
  return database;
}

// Inserts tags as a server of the version before does.
async function fill(database: TagDatabase): Promise<void> {
  const store = await database.openOldStore();
  await store.write(async (tx) => {
    for (const uid of [root, group, childUid(group, 4)]) await tx.table(groupKind).insert(groupRow(uid));
    for (const [i, uid] of repos.entries()) await tx.table(repoKind).insert(repoRow(uid, { name: `repo-${i}` }));
    for (const [n, one] of createNames(TAGS).entries()) await insertOld(tx, n, one.replace(/^(sha256-)?/, `$1${n}.`));
  });
  await store.close();
}

function insertOld(tx: Tx, n: number, name: string): Promise<void> {
  const repoUid = repos[n % repos.length] ?? "";
  return tx.table(tagKind).insert(tagRow(n, { repoUid, name, family: classifyBefore(name) }));
}

/** How many families and counters are wrong. */
async function countFaults(database: TagDatabase): Promise<number> {
  const db = await database.openCheck();
  try {
    const { findings, more } = await runCheck(counterCheck, db, () => {});
    return findings.length + more;
  } finally {
    await db.close();
  }
}

// Runs both phases as a process does that ends at a transaction, after it has committed some.
function reachesTheEnd(database: TagDatabase, end: "before" | "after", committed: number): Promise<boolean> {
  const theEnd = new Error("the end of the process");
  let commits = 0;
  return using(database, async (open) => {
    const ending: MigrationDatabase = {
      ...open,
      async write(unit) {
        const isLast = commits++ === committed;
        const value = await open.write(async (tx) => {
          const done = await unit(tx);
          if (isLast && end === "before") throw theEnd;
          return done;
        });
        if (isLast) throw theEnd;
        return value;
      },
    };
    try {
      await expand(ending, { migrations });
      await contract(ending, { migrations });
      return true;
    } catch (error) {
      if (error !== theEnd) throw error;
      return false;
    }
  });
}

async function using<T>(database: TagDatabase, use: (open: MigrationDatabase) => Promise<T>): Promise<T> {
  const open = await database.openMigration();
  try {
    return await use(open);
  } finally {
    await open.close();
  }
}
