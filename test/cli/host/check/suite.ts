// `arbor check` on databases with one fault each; runs on SQLite and on PostgreSQL.
import assert from "node:assert/strict";
import { before, describe, test } from "node:test";
import { getTableName, is } from "drizzle-orm";
import { getTableConfig, SQLiteTable } from "drizzle-orm/sqlite-core";
import { kinds } from "../../../../src/store/kinds.js";
import { counterOf } from "../../../../src/store/lists/resource.js";
import type { Store } from "../../../../src/store/store.js";
import { schema as tables } from "../../../../src/store/tables/schema-sqlite.js";
import { type Finished, runCommand } from "../../../support/command.js";
import { runOperations } from "../../../support/operations.js";
import { chooseScale } from "../../../support/scale.js";
import { derivedFaults, type Fault, soundCounters, storedFaults } from "./faults.js";
import { uids } from "./world.js";

/** A database that is not open. */
export interface CheckedCopy {
  /** The flags that name it. */
  readonly flags: readonly string[];
  /** Runs statements that foreign keys do not hinder. */
  run(statements: readonly string[]): Promise<void>;
  /** The rows of each table as text, by the name of the table; with its definition. */
  dump(): Promise<ReadonlyMap<string, string>>;
}

/** The databases of a suite. */
export interface CheckedDatabases {
  /** Creates the database that is copied, with one row of each kind. */
  prepare(): Promise<void>;
  copy(): Promise<CheckedCopy>;
  /** Opens an empty database, and says which flags name it. */
  open(clock: () => number): Promise<{ readonly store: Store; readonly flags: readonly string[] }>;
  /** Faults of one database alone. */
  readonly faults: readonly Fault[];
  /** Of how many of the other faults one is planted; 1 for all. */
  readonly share: number;
}

const indexNames = Object.values(tables as object)
  .filter((one): one is SQLiteTable => is(one, SQLiteTable))
  .flatMap((table) => getTableConfig(table).indexes.map(({ config }) => config.name));

function* batches<T>(items: readonly T[], size: number): Generator<readonly T[]> {
  for (let i = 0; i < items.length; i += size) yield items.slice(i, i + size);
}

const DERIVED = /^(counters|advisory_(values|texts.*)|overlay_selections|name_words)$/;

/** Registers the suite. */
export function checkSuite(name: string, { prepare, copy, open, faults, share }: CheckedDatabases): void {
  describe(name, () => {
    before(prepare);

    test("a sound database has no findings, and the check changes nothing", async () => {
      const database = await copy();
      await database.run(soundCounters);
      const dump = await database.dump();
      const { code, stdout, stderr } = await check(database.flags);
      assert.deepEqual([code, stderr, findingsIn(stdout)], [0, "", []]);
      assert.deepEqual(await database.dump(), dump);
    });

    test("neither has one after many operations", async () => {
      let flags: readonly string[] = [];
      await runOperations(
        async (clock) => {
          const opened = await open(clock);
          flags = opened.flags;
          return opened.store;
        },
        17,
        chooseScale(400, 150),
      );
      const { code, stdout } = await check(flags);
      assert.deepEqual([code, findingsIn(stdout)], [0, []]);
    });

    const planted = [...storedFaults, ...derivedFaults].filter((_, i) => i % share === 0);
    for (const { reason, sql, found } of [...planted, ...faults]) {
      test(`found: ${reason}`, async () => {
        const database = await copy();
        await database.run(sql);
        const { code, stdout } = await check(database.flags);
        assertFindings(findingsIn(stdout), found);
        assert.equal(code, 1);
      });
    }

    // Of the findings of one rule some are printed.
    for (const batch of batches(kinds, 6)) {
      const titles = batch.map((kind) => getTableName(kind.table(tables)));
      test(`found: a wrong root and wrong counters of ${titles.join(", ")}`, async () => {
        const database = await copy();
        const counters = batch.map((kind, i) => counterOf(kind, i % 2 === 0 ? "below" : "children"));
        await database.run([
          ...titles.map((table) => `UPDATE ${table} SET root_uid = 'x' WHERE uid = (SELECT max(uid) FROM ${table})`),
          ...counters.map(
            (counter) =>
              `UPDATE counters SET n = n + 1 WHERE counter = ${counter} AND
               scope = (SELECT min(scope) FROM counters WHERE counter = ${counter})`,
          ),
        ]);
        const found = findingsIn((await check(database.flags)).stdout);
        assertFindings(
          found.filter((one) => /^(roots|counters):/.test(one)),
          [
            ...titles.map((table) => new RegExp(`^roots: ${table} \\S+: root_uid is x, `)),
            ...counters.map((counter) => new RegExp(`^counters: counters counter=${counter} `)),
          ],
        );
      });
    }

    for (const [i, names] of [...batches(indexNames, 10)].entries()) {
      // Each is dropped on one of the databases in any case.
      if (i % share !== 0) continue;
      test(`found: no ${names.join(", ")}`, async () => {
        const database = await copy();
        await database.run(names.map((name) => `DROP INDEX ${name}`));
        const { stdout } = await check(database.flags);
        assertFindings(
          findingsIn(stdout),
          names.map((name) => new RegExp(`^schema: \\w+ ${name}: the index is missing$`)),
        );
      });
    }

    test("a repair rebuilds what is derived, and writes nothing else", async () => {
      const database = await copy();
      const stored = withoutDerived(await database.dump());
      await database.run(derivedFaults.filter(({ reason }) => !/^a (row|tag) /.test(reason)).flatMap(({ sql }) => sql));
      const { code, stdout } = await check(database.flags, "--repair");
      assert.ok(findingsIn(stdout).length > 8, stdout);
      assert.equal(code, 0);
      assert.match(
        stdout,
        /\{"rebuilt":\["roots","counters","advisory values"(,"advisory texts")?,"overlay selections","words of names"\]\}/,
      );
      assert.deepEqual(withoutDerived(await database.dump()), stored);
      assert.deepEqual(findingsIn((await check(database.flags)).stdout), []);
    });

    test("a repair leaves faults of other rows, and rebuilds nothing that is sound", async () => {
      const database = await copy();
      await database.run(storedFaults[0]?.sql ?? []);
      const before = await database.dump();
      const first = await check(database.flags, "--repair");
      assert.deepEqual([first.code, /rebuilt/.test(first.stdout)], [1, false]);
      assert.deepEqual(await database.dump(), before);
      await database.run(derivedFaults[0]?.sql ?? []);
      const { code, stdout, stderr } = await check(database.flags, "--repair");
      assert.equal(code, 1);
      assert.match(stdout, /\{"rebuilt":\["roots"\]\}/);
      assert.equal(stderr, "arbor: the check has 1 finding\n");
    });

    test("an organisation above its quota is no finding", async () => {
      const database = await copy();
      const own = `UPDATE groups SET resource_limits = '{"tags":7}' WHERE uid = '${uids.root}'`;
      await database.run([own, `UPDATE groups SET created_by = 'ann' WHERE parent_uid IS NULL`]);
      const { code, stdout } = await check(database.flags, "--quotas", "roots=1,identities=1");
      assert.equal(code, 0);
      assert.deepEqual(linesOf(stdout).find((line) => line.check === "quotas")?.notes, [
        "above the quota of roots: ann has 2, and the limit is 1",
        `above the quota of identities: ${uids.root} has 4, and its limit is 1`,
        `above the quota of tags: ${uids.root} has 8, and its limit is 7`,
      ]);
    });
  });
}

function check(flags: readonly string[], ...more: readonly string[]): Promise<Finished> {
  return runCommand(["check", "--json", ...flags, ...more]);
}

type Line = Readonly<Record<"check" | "table" | "key" | "problem" | "remedy", string>> & { notes?: string[] };

function linesOf(stdout: string): Line[] {
  return stdout
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as Line);
}

/** The findings before a repair, each as a text. All have a remedy. */
function findingsIn(stdout: string): string[] {
  const found = linesOf(stdout).filter(({ table }) => table !== undefined);
  for (const { remedy } of found) assert.ok(remedy.length > 3);
  return found.map(({ check, table, key, problem }) => `${check}: ${table} ${key}: ${problem}`);
}

function assertFindings(found: readonly string[], expected: readonly RegExp[]): void {
  const message = found.join("\n");
  assert.equal(found.length, expected.length, message);
  const rest = [...found];
  for (const pattern of expected) {
    const i = rest.findIndex((one) => pattern.test(one));
    assert.notEqual(i, -1, `${pattern} was not found in\n${message}`);
    rest.splice(i, 1);
  }
}

function withoutDerived(dump: ReadonlyMap<string, string>): ReadonlyMap<string, string> {
  return new Map([...dump].filter(([table]) => !DERIVED.test(table)));
}
