// The words of the names of resources, by which they are found in the middle of a name as well. They are rows of their own,
// because neither database finds a part of a text by an index that both have (docs/adr/0032-name-words.md).
import { and, eq, inArray, sql } from "drizzle-orm";
import { rootOf } from "../kernel/uidp.js";
import type { ListedKind, ListedRow } from "./lists/resource.js";
import {
  buildManyValues,
  type Executor,
  padParams,
  rowLimit,
  type Statement,
  statementFamily,
  TransactionPart,
  value,
} from "./statement.js";

// Names have small letters, digits and these. SQL splits names as well, so that only what both databases have is used.
const SEPARATORS = " ._/-";
const SPLIT = /[ ._/-]+/;

/** Splits a name into its words, each once. */
export function splitName(name: string): string[] {
  return [...new Set(name.split(SPLIT))].filter((word) => word !== "");
}

/** Whether a row has words. People and what belongs to no group, such as built-in roles, are in no list of names. */
function hasWords({ uid }: ListedRow, { includesSelf }: ListedKind): boolean {
  return includesSelf || uid.includes("/");
}

/** The words of an expression with a name, as the column `value` of a table `words` in SQL; some may be empty. */
export function buildWordsSql(dialect: "sqlite" | "pg", name: string): string {
  const last = SEPARATORS.slice(-1);
  if (dialect === "pg")
    return `unnest(string_to_array(translate(${name}, '${SEPARATORS}', '${last.repeat(SEPARATORS.length)}'), '${last}')) AS words(value)`;
  // As JSON a text has no separator in what it escapes.
  const replaced = [...SEPARATORS].reduce((text, one) => `replace(${text}, '${one}', '","')`, `json_quote(${name})`);
  return `json_each('[' || ${replaced} || ']') AS words`;
}

const insertWords = statementFamily<number, Record<string, string | number>>(
  String,
  (size) => (q, t) =>
    q
      .insert(t.nameWords)
      .values(buildManyValues(t.nameWords, size, "rootUid", "kind", "uid"))
      .onConflictDoNothing(),
);
const deleteWords = statementFamily<number, Record<string, string | number>>(String, (size) => (q, t) => {
  const { rootUid, kind, word, uid } = t.nameWords;
  const words = Array.from({ length: size }, (_, i) => value(`word${i}`));
  return q
    .delete(t.nameWords)
    .where(and(eq(rootUid, value("rootUid")), eq(kind, value("kind")), inArray(word, words), eq(uid, value("uid"))));
});

const nameOf = (row: ListedRow) => (row as ListedRow & { readonly name: string }).name;
const keyOf = ({ uid }: ListedRow, { number }: ListedKind) => ({ rootUid: rootOf(uid), kind: number, uid });

/** Adds the words of a row that was inserted. */
export async function addNameWords(tx: Executor, kind: ListedKind, row: ListedRow): Promise<void> {
  if (hasWords(row, kind)) await runWithWords(tx, insertWords, kind, row, splitName(nameOf(row)));
}

/** Removes the words of a row that was deleted. */
export async function removeNameWords(tx: Executor, kind: ListedKind, row: ListedRow): Promise<void> {
  if (hasWords(row, kind)) await runWithWords(tx, deleteWords, kind, row, splitName(nameOf(row)));
}

/** Changes the words of a row whose name may have changed. */
export async function changeNameWords(
  tx: Executor,
  kind: ListedKind,
  before: ListedRow,
  after: ListedRow,
): Promise<void> {
  if (nameOf(before) === nameOf(after) || !hasWords(after, kind)) return;
  const [gone, come] = [splitName(nameOf(before)), splitName(nameOf(after))];
  const without = (words: string[], others: string[]) => words.filter((word) => !others.includes(word));
  await runWithWords(tx, deleteWords, kind, after, without(gone, come));
  await runWithWords(tx, insertWords, kind, after, without(come, gone));
}

type WordsStatement = (size: number) => Statement<Record<string, string | number>, never>;

// In one order in all transactions, so that two that insert the same do not wait for each other.
async function runWithWords(
  tx: Executor,
  statementOf: WordsStatement,
  kind: ListedKind,
  row: ListedRow,
  words: string[],
): Promise<void> {
  if (words.length === 0) return;
  const { size, params } = padParams("word", words.sort());
  await tx.rows(statementOf(size), { ...keyOf(row, kind), ...params });
}

/** A word of a name, and the resource that has the name. */
export interface NameWord {
  readonly word: string;
  readonly uid: string;
}

/** Which words of names are read. */
export interface WordQuery {
  /** The organisations. */
  readonly roots: readonly string[];
  readonly kind: Pick<ListedKind, "number">;
  /** How the words begin. */
  readonly prefix: string;
  /** The last one before, in the order of words and uids. */
  readonly after: NameWord | undefined;
  readonly limit: number;
}

// The first words of each organisation: of all of them together, the first ones are among these.
const wordsOf = statementFamily<number, Record<string, string | number>, NameWord>(String, (size) => (q, t) => {
  const { rootUid, kind, word, uid } = t.nameWords;
  const first = (i: number) =>
    sql`select * from (select ${word} as word, ${uid} as uid from ${t.nameWords}
      where ${rootUid} = ${value(`root${i}`)} and ${kind} = ${value("kind")}
      and (${word}, ${uid}) > (${value("word")}, ${value("uid")}) and ${word} < ${value("end")}
      order by ${word}, ${uid} limit ${rowLimit("limit")}) ${sql.identifier(`root${i}`)}`;
  const all = sql.join(
    Array.from({ length: size }, (_, i) => first(i)),
    sql` union all `,
  );
  return q.select({ word: sql<string>`word`.as("word"), uid: sql<string>`uid`.as("uid") }).from(sql`(${all}) found`);
});

export class NameWords extends TransactionPart {
  /** The words of names that begin with a text, in the order of words and uids. */
  async find({ roots, kind, prefix, after, limit }: WordQuery): Promise<NameWord[]> {
    await this.tx.pause?.();
    const { size, params } = padParams("root", roots);
    const { word, uid } = after ?? { word: prefix, uid: "" };
    // Words are texts of small letters and digits, which come before this.
    const range = { kind: kind.number, word, uid, end: `${prefix}~`, limit };
    const rows = await this.all(wordsOf(size), { ...params, ...range });
    const found = new Map(rows.map((row) => [`${row.word} ${row.uid}`, row]));
    return [...found.values()].sort(compareWords).slice(0, limit);
  }
}

/** Compares words in the order in which they are read. */
export function compareWords(a: NameWord, b: NameWord): number {
  if (a.word !== b.word) return a.word < b.word ? -1 : 1;
  return a.uid < b.uid ? -1 : a.uid > b.uid ? 1 : 0;
}
