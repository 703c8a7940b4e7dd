// On PostgreSQL: test/pg/check-objects.test.ts.
import { copyFileSync } from "node:fs";
import { join } from "node:path";
import { openDatabase } from "../../../../src/store/sqlite/driver.js";
import { openSqlite } from "../../../../src/store/sqlite/open.js";
import { runCommand } from "../../../support/command.js";
import { memoryDir } from "../../../support/temp-dir.js";
import { objectsSuite } from "./objects-suite.js";
import { fillWorld, uids } from "./world.js";

const template = memoryDir();

/** Changes the text of the schema, as only somebody with the file can. */
const rewrite = (change: string, name: string) =>
  `PRAGMA writable_schema = ON; UPDATE sqlite_schema SET ${change} WHERE name = '${name}'; PRAGMA writable_schema = RESET`;

const TRIGGER = "AFTER UPDATE ON groups BEGIN DELETE FROM role_bindings; END";
/** A trigger whose row of the schema somebody has written. */
const hidden = (type: string, name: string) =>
  `PRAGMA writable_schema = ON; INSERT INTO sqlite_schema (type, name, tbl_name, rootpage, sql)
   VALUES ('${type}', '${name}', 'groups', 0, 'CREATE TRIGGER ${name} ${TRIGGER}'); PRAGMA writable_schema = RESET`;
/** A version of the future. */
const NEWER = "INSERT INTO __drizzle_migrations (hash, created_at) VALUES ('newer', 9999999999999)";

objectsSuite("what is not of the migrations, on SQLite", {
  async prepare() {
    const store = openSqlite({ directory: template });
    await fillWorld(store, template);
    await store.close();
  },
  async copy() {
    const directory = memoryDir();
    for (const name of ["arbor.db", "master.key"]) copyFileSync(join(template, name), join(directory, name));
    return {
      flags: ["--data", directory],
      async run(statements) {
        const db = openDatabase(join(directory, "arbor.db"));
        db.unsafeMode();
        db.pragma("foreign_keys = OFF");
        try {
          for (const statement of statements) db.exec(statement);
        } finally {
          db.close();
        }
      },
      dump: async () => new Map(),
    };
  },
  objects: [
    {
      reason: "a trigger that writes role bindings",
      sql: [
        `CREATE TRIGGER planted AFTER INSERT ON groups BEGIN
         UPDATE role_bindings SET role_uid = '${uids.root}' WHERE identity_uid = 'x'; END`,
      ],
      found: /^groups planted: no migration creates this trigger$/,
    },
    {
      reason: "a trigger that keeps rows from being deleted",
      sql: ["CREATE TRIGGER kept BEFORE DELETE ON role_bindings BEGIN SELECT RAISE(IGNORE); END"],
      found: /^role_bindings kept: no migration creates this trigger$/,
    },
    {
      reason: "a trigger in the place of one of the migrations",
      sql: [
        "DROP TRIGGER advisories_added",
        "CREATE TRIGGER advisories_added AFTER INSERT ON advisories BEGIN DELETE FROM role_bindings; END",
      ],
      found: /^advisories advisories_added: the trigger is not the one that the migrations create$/,
    },
    {
      reason: "a trigger with a name that SQLite reserves",
      sql: [hidden("trigger", "sqlite_stat9")],
      found: /^groups sqlite_stat9: no migration creates this trigger$/,
    },
    {
      reason: "a trigger with the name of a table of SQLite",
      sql: ["ANALYZE", hidden("trigger", "sqlite_stat1")],
      found: /^groups sqlite_stat1: no migration creates this trigger$/,
    },
    {
      reason: "a trigger whose type is written in capitals",
      sql: [hidden("TRIGGER", "planted")],
      found: /^groups planted: no migration creates this trigger$/,
    },
    {
      reason: "a trigger of the migrations that is gone",
      sql: ["DROP TRIGGER advisories_changed"],
      found: /^advisories advisories_changed: the trigger is missing$/,
    },
    {
      reason: "a view in the place of a table",
      sql: [
        "ALTER TABLE access_requests RENAME TO hidden",
        "CREATE VIEW access_requests AS SELECT * FROM hidden WHERE time_ms > 0",
      ],
      found: /^access_requests access_requests: no migration creates this view$/,
    },
    {
      reason: "a view beside the tables",
      sql: ["CREATE VIEW owners AS SELECT * FROM role_bindings"],
      found: /^owners owners: no migration creates this view$/,
    },
    {
      reason: "a virtual table",
      sql: ["CREATE VIRTUAL TABLE other USING fts5(text)"],
      found: /^other other: no migration creates this virtual table$/,
    },
    {
      reason: "a column that is computed",
      sql: ["ALTER TABLE groups ADD COLUMN upper_name TEXT GENERATED ALWAYS AS (upper(name)) VIRTUAL"],
      found: /^groups groups: the table is not the one that the migrations create$/,
    },
    {
      reason: "a foreign key that deletes rows",
      sql: [rewrite("sql = replace(sql, 'ON DELETE no action', 'ON DELETE cascade')", "role_bindings")],
      found: /^role_bindings role_bindings: the table is not the one that the migrations create$/,
    },
    {
      reason: "a foreign key that deletes rows, in a database that looks newer",
      sql: [NEWER, rewrite("sql = replace(sql, 'ON DELETE no action', 'ON DELETE cascade')", "role_bindings")],
      found: /^role_bindings role_bindings: the table is not the one that the migrations create$/,
    },
    {
      reason: "a constraint, in a database that looks newer",
      sql: [NEWER, rewrite("sql = replace(sql, 'FOREIGN KEY', 'CHECK (1), FOREIGN KEY')", "role_bindings")],
      found: /^role_bindings role_bindings: the table is not the one that the migrations create$/,
    },
    {
      reason: "a column that is computed, in a database that looks newer",
      sql: [NEWER, "ALTER TABLE groups ADD COLUMN upper_name TEXT GENERATED ALWAYS AS (upper(name)) VIRTUAL"],
      found: /^groups groups: the table is not the one that the migrations create$/,
    },
    {
      reason: "an index with another meaning",
      sql: [
        "DROP INDEX tickets_expiry",
        "CREATE INDEX tickets_expiry ON tickets (expire_time_ms) WHERE expire_time_ms > 0",
      ],
      found: /^tickets tickets_expiry: the index is not the one that the migrations create$/,
    },
  ],
  harmless: [
    "CREATE TABLE notes (text TEXT)",
    "CREATE INDEX groups_by_description ON groups (description)",
    "ANALYZE",
    // A newer version.
    NEWER,
    "ALTER TABLE groups ADD `color` text DEFAULT '' NOT NULL",
    "ALTER TABLE groups ADD `size` integer",
    "ALTER TABLE role_bindings ADD `group_of` text REFERENCES groups(uid)",
  ],
  async commands(flags) {
    const data = flags[1] ?? "";
    const [backup, target] = [join(memoryDir(), "backup"), join(memoryDir(), "restored")];
    return {
      "migrate --expand": () => runCommand(["migrate", "--expand", "--data", data]),
      "migrate --contract": () => runCommand(["migrate", "--contract", "--data", data]),
      "migrate --expand --dry-run": () => runCommand(["migrate", "--expand", "--dry-run", "--data", data]),
      async restore() {
        const made = await runCommand(["backup", backup, "--with-master-key", "--data", data]);
        if (made.code !== 0) throw new Error(made.stderr);
        return runCommand(["restore", backup, "--data", target]);
      },
    };
  },
});
