// Finds the advisories that pass filters. Where few have a value, or contain the text, those are examined. Otherwise they
// are only counted, and the list is read in its order, because a page is full after few advisories.
import { isBelow, parentOf, rootOf } from "../../kernel/uidp.js";
import type { Search } from "../lists/page.js";
import { type Part, planScan, type Reading } from "../lists/plan.js";
import type { ListFilter } from "../lists/query.js";
import { param } from "../lists/statements.js";
import { buildPartParams, countPart, type Found } from "../lists/walk.js";
import { EXCLUDED_AUTHORS, QUERY, valueFilters } from "./filters.js";
import {
  countDriven,
  drivenNumbers,
  lastNumber,
  type MatchShape,
  matchStatement,
  nthNumber,
  otherParam,
  positionsByNumber,
  searchedTexts,
  searchParam,
  textNumbers,
} from "./search-statements.js";

type Params = Record<string, string | number>;

/** The bounds of the work of one statement, which holds the event loop. */
export interface SearchLimits {
  /** How many advisories one statement examines. */
  readonly examined: number;
  /** How many values one statement compares. */
  readonly compared: number;
  /** How many texts one statement searches in their index; fewer where the database says so. */
  readonly texts: number;
  /** How many advisories are examined at most where there is a choice. */
  readonly candidates: number;
}

/** No advisory has so great a number. */
const END = Number.MAX_SAFE_INTEGER;

/** Each statement takes two to ten milliseconds. */
const LIMITS: SearchLimits = { examined: 1_000, compared: 16_000, texts: END, candidates: 10_000 };
/** So few advisories are always examined. */
const FEW_CANDIDATES = 256;
/** The shortest text that the index of texts finds, and how many characters of a longer one are looked up in it. */
const MIN_TEXT = 3;
const MAX_TEXT = 12;

export const createSearch =
  (limits: SearchLimits = LIMITS): Search =>
  async (reading, parts) => {
    const wanted = parseFilters(reading.query.filter);
    const found: Found[] = [];
    const rest: Part[] = [];
    for (const [root, own] of groupByRoot(parts)) {
      const search = createRootSearch(reading, root, own, wanted, limits);
      const numbers = await search.findCandidates();
      if (numbers) {
        found.push(...(await search.examine(numbers)));
        continue;
      }
      for (const part of own) {
        const matches = await search.count(part);
        if (matches > search.maxCandidates) rest.push({ ...part, matches });
        else if (matches > 0) found.push(...(await search.examine(await search.readNumbers(part))));
      }
    }
    return { found, parts: rest };
  };

/** What a list is filtered by. */
interface Wanted {
  /** Each must be met. */
  readonly conditions: readonly Condition[];
  readonly excluded: Condition | undefined;
  /** The searched text contains it; empty: no condition. */
  readonly text: string;
}

interface Condition {
  /** JSON of the number of a filter and of the values of which one must match. */
  readonly parameter: string;
  readonly hasSeveralValues: boolean;
}

function parseFilters({ equals = {} }: ListFilter): Wanted {
  const parse = (name: string, number: number): Condition | undefined => {
    const values = new Set<string>(JSON.parse(String(equals[name] ?? "[]")));
    if (values.size === 0) return undefined;
    return { parameter: JSON.stringify([number, [...values]]), hasSeveralValues: values.size > 1 };
  };
  return {
    conditions: Object.entries(valueFilters).flatMap(([name, { number }]) => parse(name, number) ?? []),
    excluded: parse(EXCLUDED_AUTHORS, valueFilters.eventAuthors.number),
    text: String(equals[QUERY] ?? ""),
  };
}

function groupByRoot(parts: readonly Part[]): Map<string, Part[]> {
  const byRoot = new Map<string, Part[]>();
  for (const part of parts) {
    const root = rootOf(part.scope);
    byRoot.set(root, [...(byRoot.get(root) ?? []), part]);
  }
  return byRoot;
}

// The search in the visible parts of one organisation.
function createRootSearch(
  reading: Reading,
  root: string,
  parts: readonly Part[],
  { conditions, excluded, text }: Wanted,
  limits: SearchLimits,
) {
  const { tx, kind, query } = reading;
  const rootCount = parts[0]?.rootCount ?? 0;
  // In its order the list is read until the page is full, so the rarer the matches are, the longer that takes.
  const untilFull = Math.sqrt((query.skip + query.limit + 1) * rootCount);
  const maxCandidates = Math.min(Math.max(FEW_CANDIDATES, Math.ceil(untilFull)), limits.candidates);
  const ownParams = {
    [param.root]: root,
    ...(excluded && { [searchParam.excluded]: excluded.parameter }),
    [searchParam.text]: text,
  };
  let driver: { readonly condition: Condition; readonly count: number } | undefined;

  return {
    maxCandidates,

    /** Reads the numbers of all advisories that may match; undefined where they are many. */
    async findCandidates(): Promise<number[] | undefined> {
      let best: { readonly params: Params; readonly count: number } | undefined;
      for (const { parameter } of conditions) {
        const params = { ...ownParams, [searchParam.driver]: parameter, [param.limit]: maxCandidates + 1 };
        const [row] = await tx.rows(countDriven, params);
        const count = row?.count ?? 0;
        if (count <= maxCandidates && count < (best?.count ?? Number.POSITIVE_INFINITY)) best = { params, count };
        await tx.pause?.();
      }
      if (best === undefined) return findTexts();
      return [...new Set((await tx.rows(drivenNumbers, best.params)).map(({ number }) => number))];
    },

    /** Reads the positions of those that match and are part of the list. */
    async examine(numbers: readonly number[]): Promise<Found[]> {
      const { order, filter } = query;
      const equals = filter.equals ?? {};
      const read = positionsByNumber({ kind, field: order.field, filters: Object.keys(equals) });
      const found: Found[] = [];
      for (let start = 0; start < numbers.length; start += limits.examined) {
        const some = JSON.stringify(numbers.slice(start, start + limits.examined));
        for (const { key, uid } of await tx.rows(read, { ...equals, numbers: some }))
          if (parts.some((part) => isIn(uid, part))) found.push({ at: { key, uid } });
        await tx.pause?.();
      }
      return found;
    },

    /** Counts the matching advisories of a part. */
    async count(part: Part): Promise<number> {
      driver ??= await chooseDriver();
      // A small part is examined, whatever the values.
      const tried = driver?.count ?? rootCount;
      if (!isWhole(part) && 2 * part.count < tried) return countPart(reading, part, planScan(reading, part));
      if (isWhole(part) && text === "") {
        if (driver && conditions.length === 1 && excluded === undefined) return driver.count;
        if (driver === undefined && excluded) return part.count - (await countCondition(excluded));
      }
      let total = 0;
      for (const [row] of await readMatches(part, "count")) total += row?.number ?? 0;
      return total;
    },

    /** Reads the numbers of the matching advisories of a part. */
    async readNumbers(part: Part): Promise<number[]> {
      const numbers: number[] = [];
      for (const rows of await readMatches(part, "numbers")) for (const { number } of rows) numbers.push(number);
      return numbers;
    },
  };

  // The numbers of all advisories that contain the text, by the index of texts; undefined where there is none, and where
  // they are many.
  async function findTexts(): Promise<number[] | undefined> {
    const characters = [...text];
    if (characters.length < MIN_TEXT) return undefined;
    const [index] = await tx.rows(searchedTexts, {});
    const step = Math.min(index?.texts ?? 0, limits.texts);
    if (step === 0) return undefined;
    const part = characters.slice(0, MAX_TEXT).join("");
    const phrase = `"${part.replaceAll('"', '""')}"`;
    const pattern = `%${part.replace(/[\\%_]/g, "\\$&")}%`;
    const [last] = await tx.rows(lastNumber, { ...ownParams, [searchParam.from]: 0, [searchParam.to]: END });
    const numbers: number[] = [];
    for (let from = 0; from <= (last?.number ?? 0); from += step) {
      const range = { [searchParam.from]: from, [searchParam.to]: from + step };
      const params = { phrase, pattern, ...range, [param.limit]: maxCandidates + 1 - numbers.length };
      for (const { number } of await tx.rows(textNumbers, params)) numbers.push(number);
      if (numbers.length > maxCandidates) return undefined;
      await tx.pause?.();
    }
    return numbers;
  }

  // The condition that the fewest advisories meet leads to them.
  async function chooseDriver() {
    let best: typeof driver;
    for (const condition of conditions) {
      const count = await countCondition(condition);
      if (count < (best?.count ?? Number.POSITIVE_INFINITY)) best = { condition, count };
    }
    return best;
  }

  async function countCondition({ parameter, hasSeveralValues }: Condition): Promise<number> {
    const alone = { others: 0, hasExcluded: false, hasText: false, among: "all" } as const;
    const shape: MatchShape = { read: "count", isDriven: true, hasDuplicates: hasSeveralValues, ...alone };
    let count = 0;
    for await (const [row] of readSlices(shape, { ...ownParams, [searchParam.driver]: parameter }))
      count += row?.number ?? 0;
    return count;
  }

  async function readMatches(part: Part, read: MatchShape["read"]) {
    const among = isWhole(part) ? "all" : part.from;
    const shape: MatchShape = {
      read,
      among,
      isDriven: driver !== undefined,
      hasDuplicates: driver?.condition.hasSeveralValues ?? false,
      others: conditions.length - (driver ? 1 : 0),
      hasExcluded: excluded !== undefined,
      hasText: text !== "",
    };
    const params: Params = { ...ownParams, ...buildPartParams(part) };
    if (driver) params[searchParam.driver] = driver.condition.parameter;
    const others = conditions.filter((one) => one !== driver?.condition);
    for (const [i, { parameter }] of others.entries()) params[otherParam(i)] = parameter;
    const all: { number: number }[][] = [];
    for await (const rows of readSlices(shape, params)) all.push(rows);
    return all;
  }

  // Runs a statement for all advisories of the organisation, slice after slice of their numbers.
  async function* readSlices(shape: MatchShape, params: Params) {
    const { others, hasExcluded, hasText, hasDuplicates, among } = shape;
    const comparisons = others + [hasExcluded, hasText, hasDuplicates, among !== "all"].filter(Boolean).length;
    // A value that is only counted costs a tenth of one that is compared.
    const size = Math.ceil(limits.compared / (comparisons + 0.1));
    const run = matchStatement(shape);
    for (let from = 0; ; ) {
      const range = { [searchParam.from]: from, [searchParam.to]: END };
      const [next] = rootCount <= size ? [] : await tx.rows(nthNumber, { ...ownParams, ...range, [param.skip]: size });
      yield tx.rows(run, { ...params, ...range, [searchParam.to]: next?.number ?? END });
      if (next === undefined) return;
      await tx.pause?.();
      from = next.number;
    }
  }
}

function isWhole({ from, scope }: Part): boolean {
  return from === "subtree" && scope === rootOf(scope);
}

function isIn(uid: string, { from, scope }: Part): boolean {
  return from === "children" ? parentOf(uid) === scope : isBelow(uid, scope);
}
