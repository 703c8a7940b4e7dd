// A migration of stored rows for tests: it moves the descriptions of groups into a table of their own, as a later version
// could. Servers without it continue to write groups meanwhile.
import type { DataMigration } from "../../../src/store/migrate/data-migration.js";

const BATCH = 20;

/** The migration. `onBatch` is called within the transaction of each batch. */
export function moveDescriptions(onBatch: () => void | Promise<void> = () => {}): DataMigration {
  return {
    name: "group-notes",
    begin: (dialect) => [
      "CREATE TABLE group_notes (uid text PRIMARY KEY, note text NOT NULL)",
      ...(dialect === "sqlite" ? sqliteTriggers : pgTriggers),
    ],
    total: async (tx) => Number((await tx.query("SELECT count(*) AS n FROM groups"))[0]?.n),
    async step(tx, position) {
      const rows = await tx.query(`SELECT uid FROM groups WHERE uid > '${position}' ORDER BY uid LIMIT ${BATCH}`);
      const last = rows.at(-1)?.uid as string | undefined;
      if (last !== undefined) {
        await tx.run(
          `INSERT INTO group_notes SELECT uid, description FROM groups WHERE uid > '${position}' AND uid <= '${last}'
           ON CONFLICT DO NOTHING`,
        );
      }
      await onBatch();
      return { position: last, done: rows.length };
    },
    contract: (dialect) =>
      dialect === "sqlite"
        ? ["added", "changed", "removed"].map((name) => ({ sql: `DROP TRIGGER note_${name}` }))
        : [{ sql: "DROP TRIGGER note_group ON groups" }, { sql: "DROP FUNCTION note_group()" }],
  };
}

const sqliteTriggers = [
  `CREATE TRIGGER note_added AFTER INSERT ON groups BEGIN
    INSERT INTO group_notes VALUES (new.uid, new.description); END`,
  `CREATE TRIGGER note_changed AFTER UPDATE ON groups BEGIN
    INSERT INTO group_notes VALUES (new.uid, new.description) ON CONFLICT (uid) DO UPDATE SET note = excluded.note; END`,
  `CREATE TRIGGER note_removed AFTER DELETE ON groups BEGIN
    DELETE FROM group_notes WHERE uid = old.uid; END`,
];

const pgTriggers = [
  `CREATE FUNCTION note_group() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    IF TG_OP = 'DELETE' THEN DELETE FROM group_notes WHERE uid = old.uid;
    ELSE INSERT INTO group_notes VALUES (new.uid, new.description) ON CONFLICT (uid) DO UPDATE SET note = excluded.note;
    END IF; RETURN NULL; END $$`,
  `CREATE TRIGGER note_group AFTER INSERT OR UPDATE OR DELETE ON groups FOR EACH ROW EXECUTE FUNCTION note_group()`,
];
