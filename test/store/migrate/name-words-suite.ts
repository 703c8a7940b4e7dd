// The migration of the words of names, which either database must do: of stored rows, and beside a server of the version before,
// which does not know them.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { describe, it } from "node:test";
import type { CheckDatabase } from "../../../src/store/check/database.js";
import { runCheck } from "../../../src/store/check/findings.js";
import { nameWordCheck } from "../../../src/store/check/name-words.js";
import { groupKind } from "../../../src/store/iam/groups.js";
import { identityKind } from "../../../src/store/iam/identities.js";
import { roleKind } from "../../../src/store/iam/roles.js";
import type { MigrationDatabase } from "../../../src/store/migrate/data-migration.js";
import { nameWords as migration } from "../../../src/store/migrate/name-words.js";
import { contract, expand } from "../../../src/store/migrate/phases.js";
import { buildWordsSql, splitName } from "../../../src/store/name-words.js";
import { repoKind } from "../../../src/store/registry/repos.js";
import type { Store } from "../../../src/store/store.js";
import { childUid, groupRow, identityRow, roleRow, rootUid } from "../../support/rows.js";
import { repoRow } from "../registry-suite.js";
import { BEFORE, setOldestVersion } from "./migration-suite.js";

const migrations = [migration];

/** One database. */
export interface NamedDatabase {
  /** Opens it as a server does that does not know the migration. */
  openStore(): Promise<Store>;
  openMigration(): Promise<MigrationDatabase>;
  openCheck(): CheckDatabase | Promise<CheckDatabase>;
}

const root = rootUid(0x61);
const names = ["acme.example", "a", "prod-eu_1", "a b  c", "x.-_ ", "same same", "-"];
/** How many groups there are at first: enough for some batches. */
const GROUPS = 600;

/** Declares the tests. `create` creates an empty database. */
export function nameWordSuite(name: string, create: () => Promise<NamedDatabase>): void {
  describe(`${name}: the words of names`, () => {
    it("are the same in SQL, whatever the name", async () => {
      const database = await create();
      await (await database.openStore()).close();
      await using(database, (open) =>
        open.read(async (tx) => {
          for (const one of [...names, "", 'a"b', "a\\b", "A'B", "é-ü", "a/b", "1,2", "[x]"]) {
            const text = `'${one.replaceAll("'", "''")}'`;
            const rows = await tx.query(
              `SELECT DISTINCT value FROM ${buildWordsSql(tx.dialect, text)} WHERE value <> ''`,
            );
            assert.deepEqual(rows.map(({ value }) => String(value)).sort(), splitName(one).sort(), one);
          }
        }),
      );
    });

    it("are stored by the expand phase, and those of what the version before writes meanwhile as well", async () => {
      const database = await create();
      await fillOld(database);
      assert.ok((await countFaults(database)) > 0, "control: without the migration there are faults");
      await using(database, async (open) => {
        await setOldestVersion(open, BEFORE);
        await expand(open, { migrations });
      });
      assert.equal(await countFaults(database), 0);

      await writeAsBefore(database, 0x900);
      assert.equal(await countFaults(database), 0);
      // A server of this version changes them beside the triggers.
      const store = await database.openStore();
      await store.write(async (tx) => {
        const groups = tx.table(groupKind);
        await groups.insert(groupRow(childUid(root, 0x950), { name: "new-one" }));
        await groups.update(childUid(root, 0x950), { name: "new two" }, 2_000);
        await groups.update(childUid(root, 0x901), { name: "another.one" }, 2_000);
        await groups.delete(childUid(root, 0x902));
      });
      await store.close();
      assert.equal(await countFaults(database), 0);

      await using(database, (open) => contract(open, { migrations }));
      assert.equal(await countFaults(database), 0);
      await writeAsBefore(database, 0xa00);
      assert.ok((await countFaults(database)) > 0, "control: after the contract phase nothing corrects them");
    });
  });
}

// `arbor check` and other commands compare the triggers of a database that is not contracted with these statements.
it("the statements of the migration of the words of names are those of version 1.14", () => {
  const text = JSON.stringify([migration.begin("sqlite"), migration.begin("pg")]);
  assert.equal(
    createHash("sha256").update(text).digest("hex"),
    "5d6fda72f3471425dfacd0212b16aeae9709a4fb7e70a49252a015019eef4f0b",
  );
});

// Rows of every kind with words, and some without, as the version before leaves them.
async function fillOld(database: NamedDatabase): Promise<void> {
  const store = await database.openStore();
  await store.write(async (tx) => {
    await tx.table(groupKind).insert(groupRow(root, { name: "acme.example" }));
    for (let i = 1; i <= GROUPS; i++)
      await tx.table(groupKind).insert(groupRow(childUid(root, i), { name: names[i % names.length] ?? "" }));
    await tx.table(identityKind).insert(identityRow(childUid(root, 0x800), { name: "ci-deploy" }));
    await tx.table(identityKind).insert(identityRow(rootUid(0x62), { name: "A Person" }));
    await tx.table(roleKind).insert(roleRow(childUid(root, 0x801), { groupUid: root, name: "audit role" }));
    await tx.table(roleKind).insert(roleRow(rootUid(0x63), { name: "built.in" }));
    await tx.table(repoKind).insert(repoRow(childUid(root, 0x802), { groupUid: root, name: "app-base" }));
  });
  await store.close();
  await using(database, (open) => open.write((tx) => tx.run("DELETE FROM name_words")));
}

// By plain statements, as a server does that does not know the table.
async function writeAsBefore(database: NamedDatabase, n: number): Promise<void> {
  const columns = "description, verified, kind, resource_limits, create_time_ms, update_time_ms";
  await using(database, (open) =>
    open.write(async (tx) => {
      for (let i = 0; i < 5; i++)
        await tx.run(`INSERT INTO groups (uid, parent_uid, root_uid, name, ${columns})
          SELECT '${childUid(root, n + i)}', uid, uid, 'late-${i} one', ${columns} FROM groups WHERE uid = '${root}'`);
      await tx.run(`UPDATE groups SET name = 'renamed one' WHERE uid = '${childUid(root, n)}'`);
      await tx.run(`UPDATE groups SET name = name WHERE uid = '${childUid(root, n + 1)}'`);
      await tx.run(`DELETE FROM groups WHERE uid = '${childUid(root, n + 4)}'`);
      await tx.run(`UPDATE identities SET name = 'somebody else' WHERE uid = '${rootUid(0x62)}'`);
      await tx.run(`UPDATE repos SET name = 'renamed-${n}' WHERE uid = '${childUid(root, 0x802)}'`);
    }),
  );
}

/** How many words are missing or too many. */
async function countFaults(database: NamedDatabase): Promise<number> {
  const db = await database.openCheck();
  try {
    const { findings, more } = await runCheck(nameWordCheck, db, () => {});
    return findings.length + more;
  } finally {
    await db.close();
  }
}

async function using<T>(database: NamedDatabase, use: (open: MigrationDatabase) => Promise<T>): Promise<T> {
  const open = await database.openMigration();
  try {
    return await use(open);
  } finally {
    await open.close();
  }
}
