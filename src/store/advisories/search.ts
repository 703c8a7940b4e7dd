// Finds the advisories that pass filters from sets of rows, one for each value of a filter, without examining others
// (docs/adr/0017-advisory-postings.md).
import { rootOf } from "../../kernel/uidp.js";
import type { Search } from "../lists/page.js";
import type { Segment } from "../lists/plan.js";
import type { ListQuery } from "../lists/query.js";
import type { ListedKind, ListedRow } from "../lists/resource.js";
import { comparePositions, isAfter, positionOf, readByUids } from "../lists/walk.js";
import type { Executor } from "../statement.js";
import { BLOCK_ROWS, RowSet } from "./row-set.js";
import {
  changedUids,
  type EntryPosition,
  type EntryShape,
  EVERY,
  filterNumbers,
  GROUP,
  hasTextIndex,
  lastWord,
  nextEntries,
  numbersOf,
  rootsOf,
  sortedEntries,
  textNumbers,
  textsAmong,
  textsBetween,
  type WordTexts,
  wordsStatement,
} from "./search-statements.js";

/** While more changes than this wait to be indexed, all advisories are examined. */
const MAX_CHANGES = 1_000;
/** How many numbers one statement takes or sorts at most. */
const MAX_NUMBERS = 4_096;
/** How many rows the index of texts finds at most. */
const MAX_TEXTS = 2_048;
/** How many words of one value one statement reads at most, and of several values. */
const MAX_WORDS = 4_096;
const MAX_WORDS_OF_MANY = 512;
/** How many entries one statement reads in order, at first and at most. */
const FIRST_ENTRIES = 128;
const MAX_ENTRIES = 2_048;
/** The shortest text that the index of texts finds. */
const MIN_TEXT = 3;

/**
 * Creates the search for advisories. It finds nothing while many advisories wait to be indexed: then all are examined.
 */
export const searchAdvisories =
  (kind: ListedKind): Search =>
  async (tx, query, segments, rowLimit, readUids) => {
    const conditions = parseFilters(query);
    if (conditions === undefined) return undefined;
    const changes = await tx.rows(changedUids, { limit: MAX_CHANGES + 1 });
    if (changes.length > MAX_CHANGES) return undefined;
    // Advisories that wait to be indexed are examined one by one.
    const changed = [...new Set(changes.map(({ uid }) => uid))];
    const fresh = await readUids(changed);
    const uids = JSON.stringify(changed);
    const stale = RowSet.of(
      (changed.length === 0 ? [] : await tx.rows(numbersOf, { uids })).map(({ number }) => number),
    );

    const roots = await readRoots(tx, segments);
    const alone = roots.length === 1 && fresh.rows.length === 0;
    const skip = alone ? query.skip : 0;
    const limit = alone ? rowLimit : query.skip + rowLimit;
    const found: EntryPosition[] = [];
    let total = fresh.total;
    for (const root of roots) {
      const set = await findRows(tx, root, conditions);
      set.removeAll(stale);
      total += set.size;
      found.push(...(await readPositions(tx, query, root, set, { skip, limit })));
      await tx.pause?.();
    }
    if (alone) return { rows: sortRows(await readRows(tx, kind, found), kind, query.order), total };
    // The page is part of the first rows of all of them.
    const sign = query.order.descending ? -1 : 1;
    const after = fresh.rows
      .map((row) => ({ row, at: positionOf(row, kind, query.order) }))
      .filter(({ at }) => isAfter(at, query));
    const merged = [...found.map((at) => ({ row: undefined, at })), ...after]
      .sort((a, b) => sign * comparePositions(a.at, b.at))
      .slice(query.skip, query.skip + rowLimit);
    const rows = await readRows(
      tx,
      kind,
      merged.filter(({ row }) => row === undefined).map(({ at }) => at),
    );
    return { rows: sortRows([...rows, ...merged.flatMap(({ row }) => row ?? [])], kind, query.order), total };
  };

function sortRows(rows: ListedRow[], kind: ListedKind, order: ListQuery["order"]): ListedRow[] {
  const sign = order.descending ? -1 : 1;
  return rows.sort((a, b) => sign * comparePositions(positionOf(a, kind, order), positionOf(b, kind, order)));
}

const readRows = (tx: Executor, kind: ListedKind, positions: readonly { readonly uid: string }[]) =>
  readByUids(
    tx,
    kind,
    positions.map(({ uid }) => uid),
  );

/** What a search looks for. */
interface Conditions {
  /** One of the values of each filter must match. */
  readonly any: readonly FilterValues[];
  readonly none: readonly FilterValues[];
  /** The searched text contains it; empty: no condition. */
  readonly text: string;
}

interface FilterValues {
  readonly filter: number;
  readonly values: readonly string[];
}

// Undefined where a filter is not indexed.
function parseFilters({ filter: { equals = {}, name } }: ListQuery): Conditions | undefined {
  const any: FilterValues[] = [];
  const none: FilterValues[] = [];
  let text = "";
  for (const [field, parameter] of Object.entries(equals)) {
    const given = String(parameter);
    if (field === "query") {
      text = given.slice(1, -1).replace(/\\(.)/gs, "$1");
      continue;
    }
    const filter = filterNumbers.get(field === "excludeEventAuthors" ? "eventAuthors" : field);
    if (filter === undefined) return undefined;
    if (given !== "[]") (field === "excludeEventAuthors" ? none : any).push({ filter, values: JSON.parse(given) });
  }
  return name === undefined ? { any, none, text } : undefined;
}

/** The visible part of an organisation. */
interface Root {
  readonly id: number;
  readonly uid: string;
  readonly lastWord: number;
  /** The segments that are visible; absent: all of it. */
  readonly segments?: readonly Segment[];
}

async function readRoots(tx: Executor, segments: readonly Segment[]): Promise<Root[]> {
  const byRoot = new Map<string, Segment[]>();
  for (const segment of segments) {
    const uid = rootOf(segment.scope);
    byRoot.set(uid, [...(byRoot.get(uid) ?? []), segment]);
  }
  const roots: Root[] = [];
  for (const { id, uid } of await tx.rows(rootsOf, { uids: JSON.stringify([...byRoot.keys()]) })) {
    const own = byRoot.get(uid) ?? [];
    const [last] = await tx.rows(lastWord, { root: id });
    if (last === undefined) continue;
    const isWhole = own.some(({ from, scope }) => from === "subtree" && scope === uid);
    roots.push({ id, uid, lastWord: last.word, ...(!isWhole && { segments: own }) });
  }
  return roots;
}

async function findRows(tx: Executor, root: Root, { any, none, text }: Conditions): Promise<RowSet> {
  let set: RowSet | undefined;
  const keep = (other: RowSet) => {
    if (set === undefined) set = other;
    else set.keepOnly(other);
  };
  for (const { filter, values } of any) {
    keep(await readWords(tx, root, filter, values));
    if (set?.size === 0) return set;
  }
  if (root.segments) keep(await readSegments(tx, root, root.segments));
  const everything = () => readWords(tx, root, EVERY, [""]);
  if (text !== "") {
    if (set === undefined || set.size > MAX_NUMBERS) {
      const found = await findTexts(tx, root, text);
      if (found) keep(found);
      else set = await scanTexts(tx, set ?? (await everything()), text);
    } else {
      const numbers = JSON.stringify(set.numbers());
      set = RowSet.of((await tx.rows(textsAmong, { numbers, text })).map(({ number }) => number));
    }
  }
  const found = set ?? (await everything());
  for (const { filter, values } of none) found.removeAll(await readWords(tx, root, filter, values));
  return found;
}

// The rows with one of these values of a filter.
async function readWords(tx: Executor, root: Root, filter: number, values: readonly string[]): Promise<RowSet> {
  const set = new RowSet();
  const step = values.length === 1 ? MAX_WORDS : MAX_WORDS_OF_MANY;
  const params = { root: root.id, filter, values: JSON.stringify(values) };
  for (let first = 0; first <= root.lastWord; first += step) {
    addWords(set, await tx.rows(wordsStatement("values"), { ...params, first, end: first + step }));
    await tx.pause?.();
  }
  return set;
}

// Texts cost a fraction of as many rows.
function addWords(set: RowSet, [texts]: readonly WordTexts[]): void {
  if (!texts?.words || !texts.bits) return;
  const bits = texts.bits.split(",");
  for (const [i, word] of texts.words.split(",").entries()) set.addWord(Number(word), Number(bits[i]));
}

// The rows in these parts of an organisation.
async function readSegments(tx: Executor, root: Root, segments: readonly Segment[]): Promise<RowSet> {
  const set = new RowSet();
  for (const { from, scope } of segments) {
    if (from === "children") {
      set.addAll(await readWords(tx, root, GROUP, [scope]));
      continue;
    }
    const params = { root: root.id, filter: GROUP, from: scope, to: `${scope}0` };
    for (let first = 0; first <= root.lastWord; first += MAX_WORDS_OF_MANY) {
      const range = { ...params, first, end: first + MAX_WORDS_OF_MANY };
      addWords(set, await tx.rows(wordsStatement("range"), range));
      await tx.pause?.();
    }
  }
  return set;
}

// The rows of an organisation whose text contains `text`, by the index of texts; undefined where there is none or too
// many rows match.
async function findTexts(tx: Executor, root: Root, text: string): Promise<RowSet | undefined> {
  if ([...text].length < MIN_TEXT) return undefined;
  const [index] = await tx.rows(hasTextIndex, {});
  if (!index?.exists) return undefined;
  const phrase = `"${text.replaceAll('"', '""')}"`;
  const pattern = `%${text.replace(/[\\%_]/g, "\\$&")}%`;
  const found = await tx.rows(textNumbers, { phrase, pattern, limit: MAX_TEXTS + 1 });
  await tx.pause?.();
  if (found.length > MAX_TEXTS) return undefined;
  return RowSet.of(found.filter((one) => one.root === root.id).map(({ number }) => number));
}

// The rows of a set whose text contains `text`: examines a block of rows after the other.
async function scanTexts(tx: Executor, set: RowSet, text: string): Promise<RowSet> {
  const found: number[] = [];
  for (const first of set.blocks()) {
    const [block] = await tx.rows(textsBetween, { first, end: first + BLOCK_ROWS, text });
    if (block?.numbers) for (const number of block.numbers.split(",")) found.push(Number(number));
    await tx.pause?.();
  }
  const matching = RowSet.of(found);
  matching.keepOnly(set);
  return matching;
}

// The positions of rows in the order of the query: `limit` after the first `skip`.
async function readPositions(
  tx: Executor,
  { order, after }: ListQuery,
  root: Root,
  set: RowSet,
  { skip, limit }: { readonly skip: number; readonly limit: number },
): Promise<EntryPosition[]> {
  const shape: EntryShape = { ...order, after: after !== undefined };
  const { size } = set;
  if (size === 0) return [];
  if (size <= MAX_NUMBERS) {
    return tx.rows(sortedEntries(shape), { ...after, numbers: JSON.stringify(set.numbers()), skip, limit });
  }
  const positions: EntryPosition[] = [];
  let rest = skip;
  let at = after;
  for (let count = FIRST_ENTRIES; ; count = Math.min(count * 2, MAX_ENTRIES)) {
    const params = { ...at, root: root.id, top: root.uid, end: `${root.uid}0`, limit: count };
    const entries = await tx.rows(nextEntries({ ...shape, after: at !== undefined }), params);
    for (const entry of entries) {
      if (!set.has(entry.number)) continue;
      if (rest > 0) rest--;
      else positions.push(entry);
      if (positions.length === limit) return positions;
    }
    const last = entries.at(-1);
    if (last === undefined || entries.length < count) return positions;
    at = { key: last.key, uid: last.uid };
    await tx.pause?.();
  }
}
