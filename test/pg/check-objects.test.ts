// What test/cli/host/check/objects.test.ts tests, on PostgreSQL. Needs TEST_ARBOR_DATABASE_URL.
import { join } from "node:path";
import { openPg } from "../../src/store/pg/open.js";
import { objectsSuite } from "../cli/host/check/objects-suite.js";
import { fillWorld } from "../cli/host/check/world.js";
import { runCommand } from "../support/command.js";
import { memoryDir, tempDir } from "../support/temp-dir.js";
import { copyDatabase, newDatabase, withClient } from "./databases.js";

const keys = tempDir();
const template = await newDatabase();

const { rows: fdw } = await withClient(template, (client) =>
  client.query("SELECT 1 FROM pg_available_extensions WHERE name IN ('postgres_fdw', 'file_fdw')"),
);
const withoutFdw = fdw.length < 2 && "postgres_fdw and file_fdw are not installed";

const FUNCTION = `CREATE FUNCTION planted() RETURNS trigger LANGUAGE plpgsql AS
  $$ BEGIN UPDATE role_bindings SET role_uid = 'x' WHERE identity_uid = 'x'; RETURN NEW; END $$`;

objectsSuite("what is not of the migrations, on PostgreSQL", {
  async prepare() {
    const store = await openPg({ url: template });
    await fillWorld(store, keys);
    await store.close();
  },
  async copy() {
    const url = await copyDatabase(template);
    return {
      flags: ["--database-url", url, "--master-key-file", join(keys, "master.key")],
      run: (statements) =>
        withClient(url, async (client) => {
          for (const statement of statements) await client.query(statement);
        }),
      dump: async () => new Map(),
    };
  },
  objects: [
    {
      reason: "a trigger that writes role bindings",
      sql: [FUNCTION, "CREATE TRIGGER planted AFTER INSERT ON groups FOR EACH ROW EXECUTE FUNCTION planted()"],
      found: /^groups planted: no migration creates this trigger$/,
    },
    {
      reason: "a trigger on the record of changes",
      sql: [
        FUNCTION,
        "CREATE TRIGGER planted AFTER INSERT ON drizzle.__drizzle_migrations FOR EACH ROW EXECUTE FUNCTION planted()",
      ],
      found: /^__drizzle_migrations planted: no migration creates this trigger$/,
    },
    {
      reason: "a rule",
      sql: ["CREATE RULE planted AS ON DELETE TO role_bindings DO INSTEAD NOTHING"],
      found: /^role_bindings planted: no migration creates this rule$/,
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
      reason: "a view and a materialized view beside the tables",
      sql: ["CREATE MATERIALIZED VIEW owners AS SELECT * FROM role_bindings"],
      found: /^owners owners: no migration creates this materialized view$/,
    },
    {
      reason: "a policy",
      sql: [
        "CREATE POLICY planted ON role_bindings USING (identity_uid <> 'x')",
        "ALTER TABLE role_bindings ENABLE ROW LEVEL SECURITY",
      ],
      found: /^role_bindings planted: no migration creates this policy$/,
    },
    {
      reason: "row security without a policy",
      sql: ["ALTER TABLE role_bindings ENABLE ROW LEVEL SECURITY"],
      found: /^role_bindings role_bindings: row security hides rows of the table$/,
    },
    {
      reason: "a table that inherits from another",
      sql: ["CREATE TABLE more_bindings () INHERITS (role_bindings)"],
      found: /^role_bindings more_bindings: the rows of this table are shown as those of the other$/,
    },
    {
      reason: "a foreign table of postgres_fdw that inherits",
      sql: [
        "CREATE EXTENSION postgres_fdw",
        "CREATE SERVER elsewhere FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host '192.0.2.1')",
        "CREATE FOREIGN TABLE more_bindings () INHERITS (role_bindings) SERVER elsewhere",
      ],
      found: /^more_bindings more_bindings: no migration creates this foreign table$/,
      skip: withoutFdw,
    },
    {
      reason: "a foreign table of file_fdw in the place of a table",
      sql: [
        "CREATE EXTENSION file_fdw",
        "CREATE SERVER files FOREIGN DATA WRAPPER file_fdw",
        "ALTER TABLE access_requests RENAME TO hidden",
        `CREATE FOREIGN TABLE access_requests (group_uid text, identity_uid text, time_ms bigint) SERVER files
         OPTIONS (filename '/dev/null', format 'csv')`,
      ],
      found: /^access_requests access_requests: no migration creates this foreign table$/,
      skip: withoutFdw,
    },
    {
      reason: "a foreign key that deletes rows",
      sql: [
        "CREATE TABLE others (uid text PRIMARY KEY)",
        "INSERT INTO others SELECT uid FROM groups",
        "ALTER TABLE groups ADD CONSTRAINT planted FOREIGN KEY (uid) REFERENCES others (uid) ON DELETE CASCADE",
      ],
      found: /^groups planted: no migration creates this constraint, which changes rows$/,
    },
    {
      reason: "a foreign key that deletes rows, with the name of another",
      sql: [
        "CREATE TABLE others (uid text PRIMARY KEY)",
        "INSERT INTO others SELECT uid FROM groups",
        `ALTER TABLE groups ADD CONSTRAINT event_positions_subscription_uid_subscriptions_uid_fk
         FOREIGN KEY (uid) REFERENCES others (uid) ON DELETE CASCADE`,
      ],
      found:
        /^groups event_positions_subscription_uid_subscriptions_uid_fk: no migration creates this constraint, which/,
    },
    {
      reason: "a constraint that runs a query by a function of PostgreSQL",
      sql: ["ALTER TABLE groups ADD CONSTRAINT planted CHECK (query_to_xml('select 1', false, false, '') IS NOT NULL)"],
      found: /^groups planted: no migration creates this constraint$/,
    },
    {
      reason: "a constraint that excludes rows",
      sql: ["ALTER TABLE audit ADD CONSTRAINT planted EXCLUDE USING btree (id WITH =)"],
      found: /^audit planted: no migration creates this constraint$/,
    },
    {
      reason: "a domain that calls a function",
      sql: [
        "CREATE FUNCTION planted() RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN DELETE FROM tickets; RETURN true; END $$",
        'CREATE DOMAIN planted AS text COLLATE "C" CHECK (planted())',
        "ALTER TABLE groups ALTER COLUMN description TYPE planted",
      ],
      found: /^groups description: its type or collation is not one of PostgreSQL$/,
    },
    {
      reason: "a collation by which other values are the same",
      sql: [
        "CREATE COLLATION planted (provider = icu, locale = 'und-u-ks-level2', deterministic = false)",
        "ALTER TABLE settings ALTER COLUMN name TYPE text COLLATE planted",
      ],
      found: /^settings name: its type or collation is not one of PostgreSQL$/,
    },
    {
      reason: "a rule on a table that was made one of an extension",
      sql: [
        "CREATE EXTENSION IF NOT EXISTS pg_trgm",
        "CREATE RULE planted AS ON DELETE TO role_bindings DO INSTEAD NOTHING",
        "ALTER EXTENSION pg_trgm ADD TABLE role_bindings",
      ],
      found: /^role_bindings planted: no migration creates this rule$/,
    },
    {
      reason: "a view of an extension in the place of a table",
      sql: [
        "CREATE EXTENSION IF NOT EXISTS pg_trgm",
        "ALTER TABLE access_requests RENAME TO hidden",
        "CREATE VIEW access_requests AS SELECT * FROM hidden WHERE time_ms > 0",
        "ALTER EXTENSION pg_trgm ADD VIEW access_requests",
      ],
      found: /^access_requests access_requests: no migration creates this view$/,
    },
    {
      reason: "a trigger, and a schema that is empty and stands first",
      sql: [
        FUNCTION,
        "CREATE TRIGGER planted AFTER INSERT ON groups FOR EACH ROW EXECUTE FUNCTION planted()",
        "CREATE SCHEMA AUTHORIZATION CURRENT_USER",
      ],
      found: /^groups planted: no migration creates this trigger$/,
    },
    {
      reason: "another table of the same name in a schema that stands first",
      sql: [
        "CREATE SCHEMA AUTHORIZATION CURRENT_USER",
        `DO $$ BEGIN EXECUTE format('CREATE TABLE %I.access_requests (LIKE public.access_requests INCLUDING ALL)', current_user); END $$`,
      ],
      found: /^access_requests .*access_requests: it is in another schema than the table settings$/,
    },
    {
      reason: "a table that a crash empties",
      sql: ["ALTER TABLE tickets SET UNLOGGED"],
      found: /^tickets tickets: a crash of the server empties the table$/,
    },
    {
      reason: "foreign keys that are not enforced",
      sql: [
        `DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET session_replication_role = replica', current_database()); END $$`,
      ],
      found: /^session_replication_role replica: foreign keys are not enforced$/,
    },
    {
      reason: "a constraint that calls a function",
      sql: [
        "CREATE FUNCTION planted(text) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN DELETE FROM tickets; RETURN true; END $$",
        "ALTER TABLE groups ADD CONSTRAINT planted CHECK (planted(name)) NOT VALID",
      ],
      found: /^groups planted: no migration creates this constraint$/,
    },
    {
      reason: "an index that calls a function",
      sql: [
        "CREATE FUNCTION planted(text) RETURNS text IMMUTABLE LANGUAGE sql AS $$ SELECT $1 $$",
        "CREATE INDEX groups_planted ON groups (planted(name))",
      ],
      found: /^groups groups_planted: it calls the function planted$/,
    },
    {
      reason: "a default",
      sql: ["ALTER TABLE role_bindings ALTER COLUMN role_uid SET DEFAULT 'owner'"],
      found: /^role_bindings role_uid: no migration gives the column this value$/,
    },
    {
      reason: "another default",
      sql: ["ALTER TABLE role_bindings ALTER COLUMN pending SET DEFAULT true"],
      found: /^role_bindings pending: no migration gives the column this value$/,
    },
    {
      reason: "a column that is computed",
      sql: ["ALTER TABLE groups ADD COLUMN upper_name text GENERATED ALWAYS AS (upper(name)) STORED"],
      found: /^groups upper_name: no migration gives the column this value$/,
    },
    {
      reason: "an operator",
      sql: [
        "CREATE FUNCTION planted(text, varchar) RETURNS boolean IMMUTABLE LANGUAGE sql AS $$ SELECT true $$",
        "CREATE OPERATOR = (LEFTARG = text, RIGHTARG = varchar, FUNCTION = planted)",
      ],
      found: /^operators =\(text,character varying\): it may replace an operator of PostgreSQL$/,
    },
    {
      reason: "a cast",
      sql: ["CREATE CAST (bigint AS text) WITH INOUT AS IMPLICIT"],
      found: /^casts bigint as text: it converts values that others compare or store$/,
    },
  ],
  harmless: [
    "CREATE TABLE notes (text text)",
    "CREATE INDEX groups_by_description ON groups (description)",
    "CREATE FUNCTION unused() RETURNS integer LANGUAGE sql AS 'SELECT 1'",
    "CREATE SCHEMA reports",
    "CREATE VIEW reports.owners AS SELECT * FROM role_bindings",
    "CREATE EXTENSION IF NOT EXISTS pg_stat_statements",
    "CREATE EXTENSION IF NOT EXISTS pg_trgm",
    "CREATE INDEX groups_words ON groups USING gin (name gin_trgm_ops)",
    "CREATE TYPE reports.total AS (rows integer)",
    "CREATE FUNCTION reports.print(reports.total) RETURNS text IMMUTABLE LANGUAGE sql AS 'SELECT $1.rows::text'",
    "CREATE CAST (reports.total AS text) WITH FUNCTION reports.print(reports.total) AS ASSIGNMENT",
    "ANALYZE groups",
  ],
  async commands(flags) {
    const target = join(memoryDir(), "copied");
    return {
      copy: () => runCommand(["copy", "--to", target, ...flags]),
      "migrate --expand": () => runCommand(["migrate", "--expand", ...flags]),
      "migrate --contract": () => runCommand(["migrate", "--contract", ...flags]),
      "migrate --expand --dry-run": () => runCommand(["migrate", "--expand", "--dry-run", ...flags]),
    };
  },
});
