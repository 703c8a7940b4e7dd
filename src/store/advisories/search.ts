// Which advisories a filtered list contains. Filters compare values of the advisory and of its events, which no index of lists
// has: advisory_values has a row for each value of each advisory. For each organisation that the caller sees:
//
//   1. findCandidates   looks for a small set that contains every match: the advisories with the values of one condition, or
//                       those whose text contains the text of the query, by the index of texts.
//   2. examine          compares the rows of such a set with all filters. This gives the matches and their order.
//   3. countMatches     where no set is small, counts the matches of each visible part, by values alone.
//   4. readMatches      reads the numbers of few matches, which are examined as well.
//
// A part with many matches is left to the list, with their number: it is read in its order, and a page is full after few
// rows. Every statement is bounded (SearchLimits), and other calls run between two of them.
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

/** Creates the search of a list of advisories. */
export function createSearch(limits: SearchLimits = LIMITS): Search {
  return async (reading, parts) => {
    const filters = parseFilters(reading.query.filter);
    const found: Found[] = [];
    const rest: Part[] = [];
    for (const [root, ofRoot] of groupByRoot(parts)) {
      const search = new OrganisationSearch(reading, filters, { root, parts: ofRoot, limits });
      const candidates = await search.findCandidates();
      if (candidates !== undefined) {
        found.push(...(await search.examine(candidates)));
        continue;
      }
      for (const part of ofRoot) {
        const matches = await search.countMatches(part);
        if (matches > search.maxCandidates) rest.push({ ...part, matches });
        else if (matches > 0) found.push(...(await search.examine(await search.readMatches(part))));
      }
    }
    return { found, parts: rest };
  };
}

/** The filters of a list. */
interface Filters {
  /** Each must be met. */
  readonly conditions: readonly Condition[];
  /** Must not be met. */
  readonly excluded: Condition | undefined;
  /** The searched text contains it; empty: no condition. */
  readonly text: string;
}

/** That an advisory has one of some values. */
interface Condition {
  /** JSON of the number of the filter and of the values. */
  readonly parameter: string;
  readonly hasSeveralValues: boolean;
}

function parseFilters({ equals = {} }: ListFilter): Filters {
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

/**
 * The condition that drives a statement: its rows of advisory_values lead to the advisories, which the others are compared
 * with.
 */
interface Driver {
  readonly condition: Condition;
  /** How many advisories meet it. */
  readonly count: number;
}

interface SearchedParts {
  readonly root: string;
  /** The visible parts of the organisation. */
  readonly parts: readonly Part[];
  readonly limits: SearchLimits;
}

/** The search in one organisation. */
class OrganisationSearch {
  /** More advisories are not examined where there is another way. */
  readonly maxCandidates: number;
  readonly #reading: Reading;
  readonly #filters: Filters;
  readonly #parts: readonly Part[];
  readonly #limits: SearchLimits;
  readonly #rootCount: number;
  /** The parameters of every statement. */
  readonly #params: Params;
  #driver: Driver | undefined;

  constructor(reading: Reading, filters: Filters, { root, parts, limits }: SearchedParts) {
    const { excluded, text } = filters;
    this.#reading = reading;
    this.#filters = filters;
    this.#parts = parts;
    this.#limits = limits;
    this.#rootCount = parts[0]?.rootCount ?? 0;
    this.maxCandidates = Math.min(findBreakEven(reading, this.#rootCount), limits.candidates);
    this.#params = {
      [param.root]: root,
      [searchParam.text]: text,
      ...(excluded && { [searchParam.excluded]: excluded.parameter }),
    };
  }

  /** Reads the numbers of advisories among which all matches are; undefined where they would be too many. */
  async findCandidates(): Promise<number[] | undefined> {
    return (await this.#findByRarestValues()) ?? this.#findByText();
  }

  /** Compares advisories with all filters, and reads the positions of those that match and are part of the list. */
  async examine(numbers: readonly number[]): Promise<Found[]> {
    const { tx, kind, query } = this.#reading;
    const equals = query.filter.equals ?? {};
    const read = positionsByNumber({ kind, field: query.order.field, filters: Object.keys(equals) });
    const found: Found[] = [];
    for (let start = 0; start < numbers.length; start += this.#limits.examined) {
      const some = JSON.stringify(numbers.slice(start, start + this.#limits.examined));
      for (const { key, uid } of await tx.rows(read, { ...equals, numbers: some })) {
        if (this.#parts.some((part) => isIn(uid, part))) found.push({ at: { key, uid } });
      }
      await tx.pause?.();
    }
    return found;
  }

  /** Counts the matching advisories of a part. */
  async countMatches(part: Part): Promise<number> {
    const { conditions, excluded, text } = this.#filters;
    this.#driver ??= await this.#chooseDriver();
    // All rows of a part that is small beside what a statement would try are examined, whatever the values.
    const tried = this.#driver?.count ?? this.#rootCount;
    if (!isWhole(part) && 2 * part.count < tried) return countPart(this.#reading, part, planScan(this.#reading, part));
    if (isWhole(part) && text === "") {
      // One condition has been counted already.
      if (this.#driver && conditions.length === 1 && excluded === undefined) return this.#driver.count;
      if (this.#driver === undefined && excluded) return part.count - (await this.#countCondition(excluded));
    }
    let total = 0;
    for await (const [row] of this.#runMatches(part, "count")) total += row?.number ?? 0;
    return total;
  }

  /** Reads the numbers of the matching advisories of a part, after {@link countMatches}. */
  async readMatches(part: Part): Promise<number[]> {
    const numbers: number[] = [];
    for await (const rows of this.#runMatches(part, "numbers")) for (const { number } of rows) numbers.push(number);
    return numbers;
  }

  // The numbers of the advisories that meet the condition which the fewest meet.
  async #findByRarestValues(): Promise<number[] | undefined> {
    const { tx } = this.#reading;
    let rarest: { readonly params: Params; readonly count: number } | undefined;
    for (const { parameter } of this.#filters.conditions) {
      const params = { ...this.#params, [searchParam.driver]: parameter, [param.limit]: this.maxCandidates + 1 };
      const [row] = await tx.rows(countDriven, params);
      const count = row?.count ?? 0;
      if (count <= this.maxCandidates && count < (rarest?.count ?? Number.POSITIVE_INFINITY))
        rarest = { params, count };
      await tx.pause?.();
    }
    if (rarest === undefined) return undefined;
    return [...new Set((await tx.rows(drivenNumbers, rarest.params)).map(({ number }) => number))];
  }

  // The numbers of all advisories that contain the text, by the index of texts; undefined where there is no such index, or no
  // text that it finds.
  async #findByText(): Promise<number[] | undefined> {
    const { tx } = this.#reading;
    const characters = [...this.#filters.text];
    if (characters.length < MIN_TEXT) return undefined;
    const [index] = await tx.rows(searchedTexts, {});
    const step = Math.min(index?.texts ?? 0, this.#limits.texts);
    if (step === 0) return undefined;
    const part = characters.slice(0, MAX_TEXT).join("");
    const patterns = { phrase: `"${part.replaceAll('"', '""')}"`, pattern: `%${part.replace(/[\\%_]/g, "\\$&")}%` };
    const all = { [searchParam.from]: 0, [searchParam.to]: END };
    const [last] = await tx.rows(lastNumber, { ...this.#params, ...all });
    const numbers: number[] = [];
    for (let from = 0; from <= (last?.number ?? 0); from += step) {
      const range = { [searchParam.from]: from, [searchParam.to]: from + step };
      const params = { ...patterns, ...range, [param.limit]: this.maxCandidates + 1 - numbers.length };
      for (const { number } of await tx.rows(textNumbers, params)) numbers.push(number);
      if (numbers.length > this.maxCandidates) return undefined;
      await tx.pause?.();
    }
    return numbers;
  }

  // The condition that the fewest advisories meet; undefined where there is none.
  async #chooseDriver(): Promise<Driver | undefined> {
    let best: Driver | undefined;
    for (const condition of this.#filters.conditions) {
      const count = await this.#countCondition(condition);
      if (count < (best?.count ?? Number.POSITIVE_INFINITY)) best = { condition, count };
    }
    return best;
  }

  // How many advisories of the organisation meet a condition.
  async #countCondition({ parameter, hasSeveralValues }: Condition): Promise<number> {
    const alone = { others: 0, hasExcluded: false, hasText: false, among: "all" } as const;
    const shape: MatchShape = { read: "count", isDriven: true, hasDuplicates: hasSeveralValues, ...alone };
    let count = 0;
    for await (const [row] of this.#runInSlices(shape, { [searchParam.driver]: parameter })) count += row?.number ?? 0;
    return count;
  }

  // Counts or reads the matching advisories of a part, by slices.
  #runMatches(part: Part, read: MatchShape["read"]) {
    const { conditions, excluded, text } = this.#filters;
    const driving = this.#driver?.condition;
    const others = conditions.filter((one) => one !== driving);
    const shape: MatchShape = {
      read,
      among: isWhole(part) ? "all" : part.from,
      isDriven: driving !== undefined,
      hasDuplicates: driving?.hasSeveralValues ?? false,
      others: others.length,
      hasExcluded: excluded !== undefined,
      hasText: text !== "",
    };
    return this.#runInSlices(shape, {
      ...buildPartParams(part),
      ...(driving && { [searchParam.driver]: driving.parameter }),
      ...Object.fromEntries(others.map(({ parameter }, i) => [otherParam(i), parameter])),
    });
  }

  // Runs a statement for all advisories of the organisation, slice after slice of their numbers.
  async *#runInSlices(shape: MatchShape, own: Params) {
    const { tx } = this.#reading;
    const { others, hasExcluded, hasText, hasDuplicates, among } = shape;
    const comparisons = others + [hasExcluded, hasText, hasDuplicates, among !== "all"].filter(Boolean).length;
    // A value that is only counted costs a tenth of one that is compared.
    const size = Math.ceil(this.#limits.compared / (comparisons + 0.1));
    const statement = matchStatement(shape);
    for (let from = 0; ; ) {
      const params = { ...this.#params, [searchParam.from]: from, [searchParam.to]: END };
      const [next] = this.#rootCount <= size ? [] : await tx.rows(nthNumber, { ...params, [param.skip]: size });
      yield tx.rows(statement, { ...params, ...own, [searchParam.to]: next?.number ?? END });
      if (next === undefined) return;
      await tx.pause?.();
      from = next.number;
    }
  }
}

// The number of matches from which on it is cheaper to read the list in its order than to examine them. In its order the list
// is read until the page is full: of `count` rows, `matches` of which match, about `rows * count / matches`. To examine the
// matches is to read `matches` rows.
function findBreakEven({ query: { skip, limit } }: Reading, count: number): number {
  const rows = skip + limit + 1;
  return Math.max(FEW_CANDIDATES, Math.ceil(Math.sqrt(rows * count)));
}

function isWhole({ from, scope }: Part): boolean {
  return from === "subtree" && scope === rootOf(scope);
}

function isIn(uid: string, { from, scope }: Part): boolean {
  return from === "children" ? parentOf(uid) === scope : isBelow(uid, scope);
}
