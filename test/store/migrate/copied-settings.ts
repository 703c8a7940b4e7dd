// A migration of stored rows for tests: it copies the settings named `old:…` into a table of its own, two at a time.
import type { DataMigration, MigrationDatabase, MigrationTx } from "../../../src/store/migrate/data-migration.js";

const BATCH = 2;

/** The migration. `onBatch` is called within the transaction of each batch. */
export function copySettings(onBatch: () => void | Promise<void> = () => {}): DataMigration {
  return {
    name: "copied-settings",
    begin: (dialect) => [
      "CREATE TABLE copies (name text PRIMARY KEY, value text NOT NULL)",
      // A batch that is repeated violates its primary key.
      "CREATE TABLE batches (after_name text PRIMARY KEY)",
      ...(dialect === "sqlite"
        ? [
            "CREATE TRIGGER copy_setting AFTER INSERT ON settings WHEN new.name LIKE 'old:%' BEGIN " +
              "INSERT INTO copies VALUES (new.name, new.value); END",
          ]
        : [
            "CREATE FUNCTION copy_setting() RETURNS trigger LANGUAGE plpgsql AS " +
              "$$ BEGIN INSERT INTO copies VALUES (new.name, new.value); RETURN new; END $$",
            "CREATE TRIGGER copy_setting AFTER INSERT ON settings FOR EACH ROW WHEN (new.name LIKE 'old:%') " +
              "EXECUTE FUNCTION copy_setting()",
          ]),
    ],
    total: async (tx) => (await oldSettings(tx)).length,
    async step(tx, position) {
      await tx.run(`INSERT INTO batches VALUES ('${position}')`);
      const rows = (await oldSettings(tx)).filter(({ name }) => name > position).slice(0, BATCH);
      for (const { name, value } of rows) {
        await tx.run(`INSERT INTO copies VALUES ('${name}', '${value}') ON CONFLICT DO NOTHING`);
      }
      await onBatch();
      return { position: rows.at(-1)?.name, done: rows.length };
    },
    contract: (dialect) => [
      { sql: dialect === "sqlite" ? "DROP TRIGGER copy_setting" : "DROP TRIGGER copy_setting ON settings" },
      ...(dialect === "sqlite" ? [] : [{ sql: "DROP FUNCTION copy_setting()" }]),
      {
        sql:
          "DELETE FROM settings WHERE name IN " +
          `(SELECT name FROM settings WHERE name LIKE 'old:%' ORDER BY name LIMIT ${BATCH})`,
        repeat: true,
      },
      { sql: "DROP TABLE batches" },
    ],
  };
}

/** What the migration changes: the settings that are left, the copies, and its own progress. */
export function readCopied(database: MigrationDatabase) {
  return database.read(async (tx) => {
    const copies = (await tx.query("SELECT name, value FROM copies ORDER BY name")) as unknown as Setting[];
    const progress = await tx.query("SELECT name, phase, position, done FROM data_migrations");
    const changed = progress.map((row) => ({ ...row, done: Number(row.done) }));
    return { left: (await oldSettings(tx)).map(({ name }) => name), copies: copies.map(toPair), progress: changed };
  });
}

/** Stores settings in their old form, as an older version does. */
export async function writeOldSettings(database: MigrationDatabase, from: number, to: number): Promise<void> {
  await database.write(async (tx) => {
    for (let i = from; i <= to; i++) await tx.run(`INSERT INTO settings VALUES ('${nameOf(i)}', 'value ${i}')`);
  });
}

/** The copies of the settings with these numbers. */
export function copiesOf(from: number, to: number): string[] {
  return Array.from({ length: to - from + 1 }, (_, i) =>
    toPair({ name: nameOf(from + i), value: `value ${from + i}` }),
  );
}

interface Setting {
  readonly name: string;
  readonly value: string;
}

async function oldSettings(tx: MigrationTx): Promise<Setting[]> {
  return (await tx.query("SELECT name, value FROM settings WHERE name LIKE 'old:%' ORDER BY name")) as never;
}

function nameOf(i: number): string {
  return `old:${String(i).padStart(4, "0")}`;
}

function toPair({ name, value }: Setting): string {
  return `${name} = ${value}`;
}
