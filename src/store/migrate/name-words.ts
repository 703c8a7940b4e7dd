// Fills the words of names. Servers of the version before do not know them; triggers keep the words of what they write.
import { getTableName } from "drizzle-orm";
import { kinds } from "../kinds.js";
import type { ListedKind } from "../lists/resource.js";
import { buildWordsSql } from "../name-words.js";
import { schema } from "../tables/schema-sqlite.js";
import type { DataMigration, Dialect } from "./data-migration.js";

/** How many rows a batch reads: some milliseconds on SQLite. */
const BATCH = 250;

interface NamedTable {
  readonly kind: ListedKind;
  readonly table: string;
}

/** The tables whose names have words, in the order in which they are filled. */
export const namedTables: readonly NamedTable[] = kinds
  .filter(({ hasNameWords }) => hasNameWords)
  .map((kind) => ({ kind, table: getTableName(kind.table(schema)) }));

/**
 * Builds the query of the words that belong to rows of a table.
 *
 * @param from the table with the alias `c`, or a row that stands for it
 */
export function buildSelectWords(dialect: Dialect, { kind }: NamedTable, from: string, where = ""): string {
  const inGroup = kind.includesSelf ? "" : " AND length(c.uid) > 40";
  const lateral = dialect === "pg" ? "CROSS JOIN LATERAL" : "CROSS JOIN";
  return `SELECT DISTINCT substr(c.uid, 1, 40) AS root_uid, ${kind.number} AS kind, words.value AS word, c.uid AS uid
    FROM ${from} ${lateral} ${buildWordsSql(dialect, "c.name")} WHERE words.value <> ''${inGroup}${where}`;
}

/** The migration. The statements of `begin` must never change: `arbor check` compares them with the schema of a file. */
export const nameWords: DataMigration = {
  name: "name-words",
  leavesNothing: true,
  begin: (dialect) => (dialect === "sqlite" ? beginSqlite() : beginPg()),

  async total(tx) {
    let total = 0;
    for (const { table } of namedTables) {
      const [row] = await tx.query(`SELECT count(*) AS n FROM ${table}`);
      total += Number(row?.n);
    }
    return total;
  },

  async step(tx, position) {
    const [index = "0", after = ""] = position.split(" ");
    const named = namedTables[Number(index)];
    if (named === undefined) return { position: undefined, done: 0 };
    const [first, second] = tx.dialect === "pg" ? ["$1", "$2"] : ["?", "?"];
    const rows = await tx.query(`SELECT uid FROM ${named.table} WHERE uid > ${first} ORDER BY uid LIMIT ${BATCH}`, [
      after,
    ]);
    const last = rows.at(-1);
    if (last !== undefined) {
      const range = ` AND c.uid > ${first} AND c.uid <= ${second}`;
      const select = buildSelectWords(tx.dialect, named, `${named.table} c`, range);
      await tx.run(`INSERT INTO name_words (root_uid, kind, word, uid) ${select} ON CONFLICT DO NOTHING`, [
        after,
        last.uid,
      ]);
    }
    const next = rows.length < BATCH ? `${Number(index) + 1}` : `${index} ${last?.uid}`;
    const isLast = rows.length < BATCH && Number(index) + 1 === namedTables.length;
    return { position: isLast ? undefined : next, done: rows.length };
  },

  contract: (dialect) =>
    dialect === "sqlite"
      ? namedTables.flatMap(({ table }) =>
          ["inserted", "renamed", "deleted"].map((event) => ({ sql: `DROP TRIGGER ${table}_words_${event}` })),
        )
      : [
          ...namedTables.map(({ table }) => ({ sql: `DROP TRIGGER ${table}_words ON ${table}` })),
          { sql: "DROP FUNCTION change_name_words()" },
        ],
};

const INSERT = "INSERT INTO name_words (root_uid, kind, word, uid)";

function beginSqlite(): readonly string[] {
  return namedTables.flatMap((named) => {
    const { kind, table } = named;
    const remove = `DELETE FROM name_words WHERE root_uid = substr(OLD.uid, 1, 40) AND kind = ${kind.number} AND uid = OLD.uid
      AND word IN (SELECT words.value FROM ${buildWordsSql("sqlite", "OLD.name")});`;
    const row = "(SELECT NEW.uid AS uid, NEW.name AS name) c";
    const add = `${INSERT} ${buildSelectWords("sqlite", named, row)} ON CONFLICT DO NOTHING;`;
    return [
      `CREATE TRIGGER ${table}_words_inserted AFTER INSERT ON ${table} BEGIN ${add} END`,
      `CREATE TRIGGER ${table}_words_renamed AFTER UPDATE OF name ON ${table} WHEN OLD.name <> NEW.name BEGIN ${remove} ${add} END`,
      `CREATE TRIGGER ${table}_words_deleted AFTER DELETE ON ${table} BEGIN ${remove} END`,
    ];
  });
}

function beginPg(): readonly string[] {
  const remove = `DELETE FROM name_words WHERE root_uid = substr(OLD.uid, 1, 40) AND kind = TG_ARGV[0]::integer AND uid = OLD.uid
        AND word IN (SELECT words.value FROM ${buildWordsSql("pg", "OLD.name")});`;
  const add = `${INSERT} SELECT DISTINCT substr(NEW.uid, 1, 40), TG_ARGV[0]::integer, words.value, NEW.uid
        FROM ${buildWordsSql("pg", "NEW.name")} WHERE words.value <> '' AND length(NEW.uid) > TG_ARGV[1]::integer
        ORDER BY 3 ON CONFLICT DO NOTHING;`;
  return [
    `CREATE FUNCTION change_name_words() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      IF TG_OP = 'INSERT' THEN
        ${add}
      ELSIF TG_OP = 'DELETE' THEN
        ${remove}
      ELSIF OLD.name <> NEW.name THEN
        ${remove}
        ${add}
      END IF;
      RETURN NULL;
    END $$`,
    ...namedTables.map(
      ({ kind, table }) => `CREATE TRIGGER ${table}_words AFTER INSERT OR UPDATE OF name OR DELETE ON ${table}
    FOR EACH ROW EXECUTE FUNCTION change_name_words('${kind.number}', '${kind.includesSelf ? 0 : 40}')`,
    ),
  ];
}
