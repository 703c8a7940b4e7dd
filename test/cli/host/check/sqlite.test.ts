// `arbor check` on SQLite. On PostgreSQL: test/pg/check.test.ts.
import { copyFileSync } from "node:fs";
import { join } from "node:path";
import { openDatabase, type SqliteDatabase } from "../../../../src/store/sqlite/driver.js";
import { openSqlite } from "../../../../src/store/sqlite/open.js";
import { memoryDir } from "../../../support/temp-dir.js";
import { type CheckedCopy, checkSuite } from "./suite.js";
import { fillWorld } from "./world.js";

const template = memoryDir();

function openCopy(directory: string): CheckedCopy {
  const withDatabase = async <T>(work: (db: SqliteDatabase) => T): Promise<T> => {
    const db = openDatabase(join(directory, "arbor.db"));
    try {
      return work(db);
    } finally {
      db.close();
    }
  };
  return {
    flags: ["--data", directory],
    run: (statements) =>
      withDatabase((db) => {
        db.unsafeMode();
        db.pragma("foreign_keys = OFF");
        for (const statement of statements) db.exec(statement);
      }),
    dump: () =>
      withDatabase((db) => {
        const tables = db.prepare("SELECT name, sql FROM sqlite_schema ORDER BY name").all() as {
          name: string;
          sql: string | null;
        }[];
        const isTable = ({ sql }: { sql: string | null }) => sql?.startsWith("CREATE TABLE") === true;
        return new Map(
          tables.filter(isTable).map(({ name, sql }) => {
            return [name, JSON.stringify([sql, db.prepare(`SELECT * FROM "${name}" ORDER BY 1, 2`).raw().all()])];
          }),
        );
      }),
  };
}

checkSuite("arbor check on SQLite", {
  async prepare() {
    const store = openSqlite({ directory: template });
    await fillWorld(store, template);
    await store.close();
  },
  async copy() {
    const directory = memoryDir();
    for (const name of ["arbor.db", "master.key"]) copyFileSync(join(template, name), join(directory, name));
    return openCopy(directory);
  },
  async open(clock) {
    const directory = memoryDir();
    return { store: openSqlite({ directory, clock }), flags: ["--data", directory] };
  },
  share: 1,
  faults: [
    ...[
      [
        "a text is missing",
        "INSERT INTO advisory_texts (advisory_texts, rowid, searched) SELECT 'delete', number, searched FROM advisories",
      ],
      ["a text of an advisory that is gone", "INSERT INTO advisory_texts (rowid, searched) VALUES (1000, 'the text')"],
      [
        "the text of an advisory is another one",
        // As many letters as before.
        "UPDATE advisories SET searched = 'the text'",
        "INSERT INTO advisory_texts (advisory_texts, rowid, searched) SELECT 'delete', number, searched FROM advisories",
        "INSERT INTO advisory_texts (rowid, searched) SELECT number, 'the test' FROM advisories",
      ],
    ].map(([reason = "", ...sql]) => ({
      reason,
      sql,
      found: [
        /^advisory texts: advisory_texts advisory_texts: the index of texts does not have the texts of the advisories$/,
      ],
    })),
    {
      reason: "an index of the file that lacks rows",
      sql: [
        "PRAGMA writable_schema = ON",
        "UPDATE sqlite_schema SET sql = replace(sql, '(`time_ms`)', '(`id`)') WHERE name = 'registry_events_time'",
      ],
      found: [
        /^schema: registry_events registry_events_time: the index is not the one that the migrations create$/,
        /^integrity: \S+arbor\.db registry_events_time: row 1 missing from index registry_events_time$/,
      ],
    },
  ],
});
