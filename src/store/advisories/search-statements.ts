// The statements that read the index of the filters of advisories.
import { and, asc, desc, eq, gte, inArray, lt, type SQL, sql } from "drizzle-orm";
import { parentOf } from "../../kernel/uidp.js";
import type { ListPosition } from "../lists/query.js";
import { type Preparable, rowLimit, statement, statementFamily, value } from "../statement.js";
import type { AdvisoryEventRow, AdvisoryRow, Facets } from "../tables/advisories.js";
import type { Tables } from "../tables/schema.js";

type Params = Record<string, string | number>;

/** Words and their bits, each in one text with commas between them and in the same order; null: there are none. */
export interface WordTexts {
  readonly words: string | null;
  readonly bits: string | null;
}

/** Reads the uids of changes that wait to be indexed; some come up repeatedly. Parameters: `limit`. */
export const changedUids = statement<{ limit: number }, { uid: string }>((q, t) =>
  q.select({ uid: t.advisoryChanges.uid }).from(t.advisoryChanges).limit(rowLimit("limit")),
);

/** Reads the numbers of the organisations with these uids. Parameters: `uids`. */
export const rootsOf = statement<{ uids: string }, { id: number; uid: string }>((q, t) =>
  q.select().from(t.advisoryRoots).where(t.anyOf(t.advisoryRoots.uid, "uids")),
);

/** Reads the numbers of the advisories with these uids. Parameters: `uids`. */
export const numbersOf = statement<{ uids: string }, { number: number }>((q, t) =>
  q.select({ number: t.advisoryEntries.number }).from(t.advisoryEntries).where(t.anyOf(t.advisoryEntries.uid, "uids")),
);

/** Reads the last word of an organisation. Parameters: `root`. */
export const lastWord = statement<{ root: number }, { word: number }>((q, t) => {
  const { advisoryPostings: p } = t;
  return q
    .select({ word: p.word })
    .from(p)
    .where(and(eq(p.root, value("root")), eq(p.filter, EVERY), eq(p.value, "")))
    .orderBy(desc(p.word))
    .limit(1);
});

/**
 * Reads words of values of a filter. Parameters: `root`, `filter`, `first` and `end` of the words; `values`, or for a
 * range of values `from` and `to`, the first one after it.
 */
export const wordsStatement = statementFamily<"values" | "range", Params, WordTexts>(String, (by) => (q, t) => {
  const { advisoryPostings: p } = t;
  return q
    .select({ words: t.joinNumbers(p.word).as("words"), bits: t.joinNumbers(p.bits).as("bits") })
    .from(p)
    .where(
      and(
        eq(p.root, value("root")),
        eq(p.filter, value("filter")),
        by === "values" ? t.anyOf(p.value, "values") : and(gte(p.value, value("from")), lt(p.value, value("to"))),
        gte(p.word, value("first")),
        lt(p.word, value("end")),
      ),
    );
});

/** An order of advisories. */
export interface EntryShape {
  readonly field: string;
  readonly descending: boolean;
  /** Whether it begins after a position: parameters `key` and `uid`. */
  readonly after: boolean;
}

/** The position of an advisory in an order, and its number. */
export interface EntryPosition extends ListPosition {
  readonly number: number;
}

/** Reads the positions of some advisories in order. Parameters: `numbers`, `limit`, `skip`. */
export const sortedEntries = statementFamily<EntryShape, Params, EntryPosition>(
  shapeKey,
  (shape) => (q, t) =>
    q
      .select(selectPosition(shape, t))
      .from(t.advisoryEntries)
      .where(and(inArray(t.advisoryEntries.number, t.numbersIn("numbers")), buildPosition(shape, t)))
      .orderBy(...buildOrder(shape, t))
      .limit(rowLimit("limit"))
      .offset(rowLimit("skip")),
);

/** Reads the positions of all advisories of an organisation in order. Parameters: `root`, `limit`; `top` and `end` of uids. */
export const nextEntries = statementFamily<EntryShape, Params, EntryPosition>(shapeKey, (shape) => (q, t) => {
  const { advisoryEntries: e } = t;
  const { field, descending, after } = shape;
  // In uid order the position replaces a bound of the range; see lists/statements.ts.
  const range =
    field !== "uid"
      ? and(eq(e.root, value("root")), buildPosition(shape, t))
      : and(
          sql`${e.uid} ${sql.raw(after && !descending ? ">" : ">=")} ${value(after && !descending ? "uid" : "top")}`,
          lt(e.uid, value(after && descending ? "uid" : "end")),
        );
  return q
    .select(selectPosition(shape, t))
    .from(e)
    .where(range)
    .orderBy(...buildOrder(shape, t))
    .limit(rowLimit("limit"));
});

function shapeKey({ field, descending, after }: EntryShape): string {
  return [field, descending, after].join(" ");
}

function keyColumn(field: string, { advisoryEntries: e }: Tables) {
  return field === "created_at" ? e.createTimeMs : field === "updated_at" ? e.updateTimeMs : undefined;
}

function selectPosition({ field }: EntryShape, t: Tables) {
  const { number, uid } = t.advisoryEntries;
  return { number, uid, key: keyColumn(field, t) ?? uid };
}

function buildPosition({ field, descending, after }: EntryShape, t: Tables): SQL | undefined {
  if (!after) return undefined;
  const key = keyColumn(field, t);
  const { uid } = t.advisoryEntries;
  const sign = sql.raw(descending ? "<" : ">");
  return key ? sql`(${key}, ${uid}) ${sign} (${value("key")}, ${value("uid")})` : sql`${uid} ${sign} ${value("uid")}`;
}

function buildOrder({ field, descending }: EntryShape, t: Tables): SQL[] {
  const direction = descending ? desc : asc;
  const key = keyColumn(field, t);
  return [...(key ? [direction(key)] : []), direction(t.advisoryEntries.uid)];
}

/** Whether an index finds texts. */
export const hasTextIndex = statement<object, { exists: number | boolean }>(
  (q, t) =>
    q.select({ exists: sql<number | boolean>`${t.hasTextIndex}`.as("exists") }).from(sql`(select 1) one`) as Preparable,
);

/** Reads the numbers of advisories of any organisation by an index of texts. Parameters: `phrase`, `pattern`, `limit`. */
export const textNumbers = statement<Params, { number: number; root: number }>((q, t) => {
  const integer = (name: string) => sql<number>`${sql.raw(name)}`.mapWith(Number).as(name);
  return q.select({ number: integer("number"), root: integer("root") }).from(t.foundTexts) as Preparable;
});

/** Reads the numbers among some whose text contains another. Parameters: `text`, `numbers`. */
export const textsAmong = statement<Params, { number: number }>((q, t) => {
  const { advisoryEntries: e } = t;
  return q
    .select({ number: e.number })
    .from(e)
    .where(and(inArray(e.number, t.numbersIn("numbers")), t.contains(e.searched, "text")));
});

/** Reads the numbers of a range whose text contains another, as one text. Parameters: `text`, `first`, `end`. */
export const textsBetween = statement<Params, { numbers: string | null }>((q, t) => {
  const { advisoryEntries: e } = t;
  return q
    .select({ numbers: t.joinNumbers(e.number).as("numbers") })
    .from(e)
    .where(and(gte(e.number, value("first")), lt(e.number, value("end")), t.contains(e.searched, "text")));
});

// The values under which the index of filters finds an advisory.

/** The number of the filter that all advisories pass, with an empty value. */
export const EVERY = 0;
/** The number of the filter by group. */
export const GROUP = 1;

// The numbers are stored, so they never change.
const readers: readonly [name: string, read: (row: AdvisoryRow, events: readonly AdvisoryEventRow[]) => string[]][] = [
  ["every", () => [""]],
  ["group", ({ uid }) => [parentOf(uid) ?? ""]],
  ["advisoryIds", (row) => [row.advisoryId]],
  ["legacyAdvisoryIds", (row) => [row.legacyAdvisoryId]],
  ["artifactNames", (row) => [row.artifactName]],
  ["artifactTypes", (row) => [row.artifactType]],
  ["artifactArchitectures", (row) => [row.artifactArchitecture]],
  ["componentNames", (row) => [row.componentName]],
  ["componentTypes", (row) => [row.componentType]],
  ["componentLocations", (row) => [row.componentLocation]],
  ["latestEventType", (row) => [String(row.latestEventType)]],
  ["aliases", (row) => unique(row.aliases)],
  ["eventReviewStates", (_, events) => unique(events.map(({ reviewState }) => String(reviewState)))],
  ["eventAuthors", (_, events) => unique(events.map(({ author }) => author))],
  ["eventReviewers", (_, events) => unique(events.map(({ reviewer }) => reviewer))],
  ["eventTypes", (_, events) => unique(events.map(({ type }) => String(type)))],
];

/** The numbers of the filters by their names in a list query. */
export const filterNumbers: ReadonlyMap<string, number> = new Map(readers.map(([name], number) => [name, number]));

/** Builds the values of an advisory with these events for each filter. */
export function buildFacets(row: AdvisoryRow, events: readonly AdvisoryEventRow[]): Facets {
  return readers.map(([, read]) => read(row, events));
}

function unique(values: readonly string[]): string[] {
  return [...new Set(values)];
}
