// What the phases of an upgrade must do on either database.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { MigrationDatabase } from "../../../src/store/migrate/data-migration.js";
import { contract, expand, type MigrationProgress, readDatabaseState } from "../../../src/store/migrate/phases.js";
import { needsContracting, needsExpanding } from "../../../src/store/migrate/state.js";
import type { Store } from "../../../src/store/store.js";
import { VERSION } from "../../../src/store/version.js";
import { copiesOf, copySettings, readCopied, writeOldSettings } from "./copied-settings.js";

/** One database, which can be opened several times. */
export interface TestDatabase {
  /** Opens it as the service does, with the migration of these tests or without it. */
  openStore(migrations: "none" | "copy"): Promise<Store>;
  openMigration(): Promise<MigrationDatabase>;
}

const ROWS = 5;
/** The version that the databases of the tests are of. */
export const BEFORE = "0.0.1";
/** A time at which a process ends: before the commit of a transaction, or right after it. */
type End = "before the commit" | "after the commit";

/** Declares the tests. `create` creates an empty database. */
export function migrationSuite(name: string, create: () => Promise<TestDatabase>): void {
  const migrations = [copySettings()];

  async function createOld(): Promise<TestDatabase> {
    const test = await create();
    await (await test.openStore("none")).close();
    await using(test, async (database) => {
      await setOldestVersion(database, BEFORE);
      await writeOldSettings(database, 1, ROWS);
    });
    return test;
  }

  const upgraded = {
    left: [] as string[],
    copies: copiesOf(1, ROWS),
    progress: [{ name: "copied-settings", phase: "contracted", position: "", done: ROWS }],
  };

  describe(name, () => {
    it("expands, lets the version before go on, and contracts", async () => {
      const test = await createOld();
      await using(test, async (database) => {
        const before = await readDatabaseState(database, migrations);
        assert.deepEqual([needsExpanding(before), needsContracting(before)], [true, false]);
        await assert.rejects(contract(database, { migrations }), /run `arbor migrate --expand`/);
        const shown: MigrationProgress[] = [];
        await expand(database, { migrations, periodMs: 0, onProgress: (progress) => shown.push(progress) });
        assert.deepEqual(
          shown.map(({ done, total }) => [done, total]),
          [0, 2, 4, 5, 5].map((done) => [done, ROWS]),
        );
        const expanded = await readDatabaseState(database, migrations);
        assert.deepEqual([needsExpanding(expanded), needsContracting(expanded)], [false, true]);
        assert.equal(expanded.oldestVersion, BEFORE, "no version is kept out");
        await writeOldSettings(database, ROWS + 1, ROWS + 1);
        assert.deepEqual((await readCopied(database)).copies, copiesOf(1, ROWS + 1), "what it writes is copied");

        await contract(database, { migrations });
        const contracted = await readDatabaseState(database, migrations);
        assert.deepEqual([needsExpanding(contracted), needsContracting(contracted)], [false, false]);
        assert.equal(contracted.oldestVersion, VERSION);
        assert.deepEqual(await readCopied(database), { ...upgraded, copies: copiesOf(1, ROWS + 1) });
      });
    });

    it("does nothing the second time", async () => {
      const test = await createOld();
      await using(test, async (database) => {
        for (let i = 0; i < 2; i++) {
          await expand(database, { migrations });
          await contract(database, { migrations });
        }
        assert.deepEqual(await readCopied(database), upgraded);
      });
    });

    it("keeps older versions out with the contract phase, also where no row has an old form", async () => {
      const test = await createOld();
      await using(test, async (database) => {
        await expand(database, { migrations });
        await contract(database, { migrations });
        await setOldestVersion(database, BEFORE);
        const before = await readDatabaseState(database, migrations);
        assert.deepEqual([before.oldestVersion, needsContracting(before)], [BEFORE, false]);
        await contract(database, { migrations });
        assert.equal((await readDatabaseState(database, migrations)).oldestVersion, VERSION);
      });
    });

    it("neither loses nor repeats anything, whenever the process ends", async () => {
      for (const end of ["before the commit", "after the commit"] as const) {
        const test = await createOld();
        let ends = 0;
        for (; ends < 100; ends++) {
          // Each process commits one transaction, so that all together end at every one of them.
          const committed = end === "before the commit" && ends > 0 ? 1 : 0;
          if (await reachesTheEnd(test, end, committed)) break;
        }
        assert.ok(ends >= 8 && ends < 100, `${ends} processes ended ${end}`);
        await using(test, async (database) => assert.deepEqual(await readCopied(database), upgraded, end));
      }
    });

    it("is tested with rows that show a lost or a repeated batch", async () => {
      const test = await createOld();
      await using(test, async (database) => {
        await expand(database, { migrations });
        const setPosition = (position: string) =>
          database.write((tx) => tx.run(`UPDATE data_migrations SET position = '${position}', phase = 'expanding'`));
        await setPosition("");
        await assert.rejects(expand(database, { migrations }), /unique|duplicate/i);
        await database.write((tx) => tx.run("DELETE FROM copies"));
        await setPosition("old:0003");
        await database.write((tx) => tx.run("DELETE FROM batches"));
        await expand(database, { migrations });
        await contract(database, { migrations });
        assert.deepEqual((await readCopied(database)).copies, copiesOf(4, ROWS));
      });
    });

    it("two processes at once do the work of one", async () => {
      const test = await createOld();
      await Promise.all(
        [1, 2].map(() =>
          using(test, async (database) => {
            await expand(database, { migrations });
          }),
        ),
      );
      await Promise.all([1, 2].map(() => using(test, (database) => contract(database, { migrations }))));
      await using(test, async (database) => assert.deepEqual(await readCopied(database), upgraded));
    });

    it("creates an empty database in its new form, which needs neither phase", async () => {
      const test = await create();
      await (await test.openStore("copy")).close();
      await using(test, async (database) => {
        const state = await readDatabaseState(database, migrations);
        assert.deepEqual([needsExpanding(state), needsContracting(state)], [false, false]);
        assert.equal(state.oldestVersion, VERSION);
        assert.deepEqual((await readCopied(database)).copies, []);
      });
      const created = await create();
      await using(created, (database) => expand(database, { migrations }));
      await (await created.openStore("copy")).close();
    });

    it("is opened only when it is expanded, and the error names the command", async () => {
      const test = await createOld();
      await assert.rejects(test.openStore("copy"), /older version: run `arbor migrate --expand`/);
      await using(test, (database) => expand(database, { migrations }));
      const store = await test.openStore("copy");
      await store.check();
      await store.close();
    });

    it("is not opened by a version that is too old, and the error names both versions", async () => {
      const test = await createOld();
      const open = await test.openStore("none");
      const next = VERSION.replace(/^\d+/, (major) => String(Number(major) + 1));
      const tooOld = new RegExp(`needs version ${next} of arbor or a newer one, and this is version ${VERSION}`);
      await using(test, (database) => setOldestVersion(database, next));
      await assert.rejects(async () => open.check(), tooOld, "a service that runs is no longer ready");
      await open.close();
      await assert.rejects(test.openStore("none"), tooOld);
      await using(test, async (database) => {
        await assert.rejects(expand(database, { migrations }), tooOld);
        await assert.rejects(contract(database, { migrations }), tooOld);
        await setOldestVersion(database, VERSION);
      });
      await (await test.openStore("none")).close();
    });
  });

  // Runs both phases as a process does that ends at a transaction, after it has committed some.
  async function reachesTheEnd(test: TestDatabase, end: End, committed: number): Promise<boolean> {
    let commits = 0;
    const theEnd = new Error("the end of the process");
    return using(test, async (database) => {
      const ending: MigrationDatabase = {
        ...database,
        write: async (unit) => {
          const isLast = commits++ === committed;
          const value = await database.write(async (tx) => {
            const done = await unit(tx);
            if (isLast && end === "before the commit") throw theEnd;
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
        assert.equal(error, theEnd);
        return false;
      }
    });
  }
}

/** Names the oldest version that may open the database. */
export async function setOldestVersion(database: MigrationDatabase, version: string): Promise<void> {
  await database.write((tx) => tx.run(`UPDATE settings SET value = '${version}' WHERE name = 'oldest_version'`));
}

async function using<T>(test: TestDatabase, work: (database: MigrationDatabase) => Promise<T>): Promise<T> {
  const database = await test.openMigration();
  try {
    return await work(database);
  } finally {
    await database.close();
  }
}
