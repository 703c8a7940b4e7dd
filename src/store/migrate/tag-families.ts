// Brings stored tags into the families that their names have since version 1.12, with the counters of lists. Servers of the
// version before write the families 0 to 3; a trigger corrects what they write.
import { countRow } from "../lists/counters.js";
import { counterOf } from "../lists/resource.js";
import { buildFamilySql } from "../registry/tag-families.js";
import { tagKind } from "../registry/tags.js";
import type { DataMigration, Dialect, MigrationTx } from "./data-migration.js";

/** How many tags a batch reads: if all of them change, it takes some milliseconds on SQLite. */
const BATCH = 250;

/** The migration. The statements of `begin` must never change: `arbor check` compares them with the schema of a file. */
export const tagFamilies: DataMigration = {
  name: "tag-families",
  leavesNothing: true,
  begin: (dialect) => (dialect === "sqlite" ? beginSqlite() : beginPg()),

  async total(tx) {
    const [row] = await tx.query("SELECT count(*) AS n FROM tags");
    return Number(row?.n);
  },

  async step(tx, position) {
    const rows = await readBatch(tx, position);
    const last = rows.at(-1);
    if (last === undefined) return { position: undefined, done: 0 };
    const changed = rows.filter(({ family, next }) => family !== next);
    if (changed.length > 0) {
      const [from, to] = tx.dialect === "pg" ? ["$1", "$2"] : ["?", "?"];
      const family = buildFamilySql(tx.dialect, "name");
      const range = `uid > ${from} AND uid <= ${to}`;
      await tx.run(`UPDATE tags SET family = ${family} WHERE ${range} AND family <> ${family}`, [position, last.uid]);
      await recount(tx, changed);
    }
    return { position: rows.length < BATCH ? undefined : last.uid, done: rows.length };
  },

  contract: (dialect) =>
    dialect === "sqlite"
      ? [{ sql: "DROP TRIGGER tag_family_inserted" }, { sql: "DROP TRIGGER tag_family_renamed" }]
      : [{ sql: "DROP TRIGGER tag_family ON tags" }, { sql: "DROP FUNCTION set_tag_family()" }],
};

interface Classified {
  readonly uid: string;
  readonly repoUid: string;
  /** As it is stored. */
  readonly family: number;
  /** As the name says. */
  readonly next: number;
}

async function readBatch(tx: MigrationTx, position: string): Promise<Classified[]> {
  const rows = await tx.query(
    `SELECT uid, repo_uid, family, ${buildFamilySql(tx.dialect, "name")} AS next FROM tags
     WHERE uid > ${tx.dialect === "pg" ? "$1" : "?"} ORDER BY uid LIMIT ${BATCH}`,
    [position],
  );
  return rows.map(({ uid, repo_uid, family, next }) => ({
    uid: String(uid),
    repoUid: String(repo_uid),
    family: Number(family),
    next: Number(next),
  }));
}

// Counts the tags of a repo together that have left a family or come to one.
async function recount(tx: MigrationTx, changed: readonly Classified[]): Promise<void> {
  const changes = new Map<string, { readonly uid: string; readonly family: number; n: number }>();
  for (const { uid, repoUid, family, next } of changed) {
    for (const [one, n] of [
      [family, -1],
      [next, 1],
    ] as const) {
      const key = `${repoUid} ${one}`;
      const change = changes.get(key) ?? { uid, family: one, n: 0 };
      change.n += n;
      changes.set(key, change);
    }
  }
  for (const { n, ...row } of changes.values()) await countRow(tx, tagKind, row, n);
}

// A server writes a tag, or its name, and counts it in the family that it knows. The triggers give it the other family, and
// count it there. A uid of n characters has (n - 40) / 17 ancestors; the first one has 40 characters.

function beginSqlite(): readonly string[] {
  const family = buildFamilySql("sqlite", "NEW.name");
  const build = (name: string, event: string) => `CREATE TRIGGER ${name} AFTER ${event} ON tags
    WHEN NEW.family <> ${family} BEGIN
      ${buildRecount("sqlite", "NEW.family", family)};
      UPDATE tags SET family = ${family} WHERE uid = NEW.uid;
    END`;
  return [build("tag_family_inserted", "INSERT"), build("tag_family_renamed", "UPDATE OF name")];
}

function beginPg(): readonly string[] {
  return [
    `CREATE FUNCTION set_tag_family() RETURNS trigger LANGUAGE plpgsql AS $$
    DECLARE
      before integer := NEW.family;
    BEGIN
      NEW.family := ${buildFamilySql("pg", "NEW.name")};
      IF NEW.family <> before THEN
        ${buildRecount("pg", "before", "NEW.family")};
      END IF;
      RETURN NEW;
    END $$`,
    `CREATE TRIGGER tag_family BEFORE INSERT OR UPDATE OF name ON tags
    FOR EACH ROW EXECUTE FUNCTION set_tag_family()`,
  ];
}

function buildRecount(dialect: Dialect, before: string, after: string): string {
  const [below, children] = [counterOf(tagKind, "below"), counterOf(tagKind, "children")];
  const lengths =
    dialect === "sqlite"
      ? `(WITH RECURSIVE l(n) AS (SELECT 40 UNION ALL SELECT n + 17 FROM l WHERE n + 34 <= length(NEW.uid)) SELECT n FROM l)`
      : `(SELECT generate_series(40, length(NEW.uid) - 17, 17) AS n)`;
  return `INSERT INTO counters (scope, counter, slot, n)
      SELECT substr(NEW.uid, 1, l.n), c.counter + 2 * f.family, 0, f.change FROM ${lengths} l
      CROSS JOIN (SELECT ${before} AS family, -1 AS change UNION ALL SELECT ${after}, 1) f
      CROSS JOIN (SELECT ${below} AS counter UNION ALL SELECT ${children}) c
      WHERE c.counter = ${below} OR l.n = length(NEW.uid) - 17 ORDER BY 1, 2
      ON CONFLICT (scope, counter, slot) DO UPDATE SET n = counters.n + excluded.n`;
}
