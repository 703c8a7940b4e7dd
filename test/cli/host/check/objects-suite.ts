// Objects that somebody has put into a database beside the tables: `arbor check` finds each of them, and no command copies,
// migrates or restores a database that has one. The suite runs on both databases.
import assert from "node:assert/strict";
import { before, describe, test } from "node:test";
import { type Finished, runCommand } from "../../../support/command.js";
import type { CheckedCopy } from "./suite.js";

export interface PlantedObject {
  readonly reason: string;
  readonly sql: readonly string[];
  /** What `arbor check` says first, as `TABLE NAME: PROBLEM`. */
  readonly found: RegExp;
  /** A table that is not one any more ends the check. */
  readonly skip?: string | false;
}

export interface ObjectDatabases {
  prepare(): Promise<void>;
  copy(): Promise<CheckedCopy>;
  readonly objects: readonly PlantedObject[];
  /** Objects with which nobody can change or replace a row. */
  readonly harmless: readonly string[];
  /** Commands that must refuse the database, each with its arguments. */
  commands(flags: readonly string[]): Promise<Readonly<Record<string, () => Promise<Finished>>>>;
}

/** Registers the suite. */
export function objectsSuite(name: string, { prepare, copy, objects, harmless, commands }: ObjectDatabases): void {
  describe(name, () => {
    before(prepare);

    for (const { reason, sql, found, skip = false } of objects) {
      test(`${reason}: found, and refused`, { skip }, async () => {
        const database = await copy();
        await database.run(sql);
        const { code, stdout } = await runCommand(["check", "--json", ...database.flags]);
        const findings = stdout
          .trimEnd()
          .split("\n")
          .map((line) => JSON.parse(line) as Record<string, string>)
          .filter(({ check, table }) => check === "schema" && table !== undefined);
        const texts = findings.map(({ table, key, problem }) => `${table} ${key}: ${problem}`);
        assert.ok(
          texts.some((text) => found.test(text)),
          `${found} is not in ${texts.join("\n") || stdout}`,
        );
        assert.equal(code, 1);
        for (const [command, run] of Object.entries(await commands(database.flags))) {
          const ended = await run();
          assert.equal(ended.code, 6, `${command}: ${ended.code} ${ended.stderr}${ended.stdout}`);
          assert.match(ended.stderr, /keep this database as evidence and restore a backup/, command);
        }
      });
    }

    test("control: what changes and replaces no row is no finding, and refused by nothing", async () => {
      const database = await copy();
      await database.run(harmless);
      const { stdout } = await runCommand(["check", "--json", ...database.flags]);
      const schema = stdout.split("\n").filter((line) => /"check":"schema"/.test(line));
      assert.deepEqual(schema, ['{"check":"schema","findings":0,"notes":[],"leftOut":[]}']);
      for (const [command, run] of Object.entries(await commands(database.flags))) {
        const ended = await run();
        assert.equal(ended.code, 0, `${command}: ${ended.code} ${ended.stderr}`);
      }
    });
  });
}
