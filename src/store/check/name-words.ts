// Whether the words of names are stored as they follow from the names.
import { type SQL, sql } from "drizzle-orm";
import type { AnySQLiteColumn } from "drizzle-orm/sqlite-core";
import { buildSelectWords, namedTables } from "../migrate/name-words.js";
import { schema } from "../tables/schema-sqlite.js";
import type { CheckDatabase } from "./database.js";
import type { Check } from "./findings.js";
import { reportRows } from "./references.js";

const { nameWords } = schema;

/** The columns that {@link nameWordCheck} compares. */
export const comparedNameColumns: readonly AnySQLiteColumn[] = [nameWords.rootUid];

/** Compares the words with the names. */
export const nameWordCheck: Check = {
  name: "words of names",
  async run(context) {
    const report = (rule: string, faulty: SQL, problem: string) =>
      reportRows(context, {
        rule,
        table: nameWords,
        columns: [],
        faulty,
        describe: () => ({ problem, remedy: "arbor check --repair", repairable: true }),
      });
    for (const named of namedTables) {
      context.progress(`words of ${named.table}`);
      const expected = sql.raw(buildSelectWords(context.db.dialect, named, `${named.table} c`));
      const missing = sql`(${expected}) c where not exists (select 1 from ${nameWords} w where w.root_uid = c.root_uid
        and w.kind = c.kind and w.word = c.word and w.uid = c.uid)`;
      await report(`missing word of ${named.table}`, missing, "a word of a name is not stored");
      const words = sql.raw(buildSelectWords(context.db.dialect, named, `${named.table} c`, " AND c.uid = w.uid"));
      const extra = sql`(select * from ${nameWords} w where w.kind = ${named.kind.number} and not exists (
        select 1 from (${words}) e where e.root_uid = w.root_uid and e.word = w.word)) c`;
      await report(`extra word of ${named.table}`, extra, "no name has this word");
    }
    const numbers = namedTables.map(({ kind }) => kind.number);
    await report("unknown kind", sql`${nameWords} c where c.kind not in ${numbers}`, "no kind has this number");
  },
};

/** The statements that derive the words again. */
export function rebuildNameWords(dialect: CheckDatabase["dialect"]): readonly SQL[] {
  return [
    sql`delete from ${nameWords}`,
    ...namedTables.map((named) => {
      const words = sql.raw(buildSelectWords(dialect, named, `${named.table} c`));
      return sql`insert into ${nameWords} (root_uid, kind, word, uid) ${words}`;
    }),
  ];
}
