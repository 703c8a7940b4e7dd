// The families of tags. Lists hide tags of some kinds, which follow from the name, unless they are included. A tag of several
// kinds is listed only if each of them is included, so every set of kinds is a family, stored with the tag.
import type { Dialect } from "../migrate/data-migration.js";

/** The kinds of tags that lists hide by default. */
export type HiddenKind = "referrers" | "dates" | "epochs" | "vcsSnapshots";

interface HiddenKindRule {
  readonly kind: HiddenKind;
  /** Names the kind in page tokens. */
  readonly number: number;
  readonly bit: number;
  /** PostgreSQL must understand it as JavaScript does. */
  readonly pattern: RegExp;
  /** The same condition on SQLite. */
  readonly sqlite: (name: string) => string;
}

const DIGITS = "0123456789";

// A suffix of the version grammar of apk: `_git`, then digits or none, and then the end, the next suffix or the next part of
// the tag, such as `-r0` and `-dev`. A version begins with a number, so a name without one, such as `feature_git`, has no
// suffix, and `_github` and `_git3f2a9c1` are none.
const VCS_SNAPSHOT = /[0-9].*_(?:cvs|svn|git|hg)[0-9]*(?![^_-])/;

const rules: readonly HiddenKindRule[] = [
  {
    kind: "referrers",
    number: 1,
    bit: 1,
    pattern: /^sha256-/,
    sqlite: (name) => `${name} GLOB 'sha256-*'`,
  },
  {
    kind: "dates",
    number: 2,
    bit: 2,
    pattern: /-20[0-9]{2}(?:0[1-9]|1[0-2])(?:0[1-9]|[12][0-9]|3[01])$/,
    sqlite: (name) =>
      `${name} GLOB '*-20${"[0-9]".repeat(6)}' AND substr(${name}, -4, 2) BETWEEN '01' AND '12' ` +
      `AND substr(${name}, -2) BETWEEN '01' AND '31'`,
  },
  {
    kind: "epochs",
    number: 3,
    bit: 4,
    pattern: /-r[0-9]+$/,
    sqlite: (name) => `${name} GLOB '*[0-9]' AND rtrim(${name}, '${DIGITS}') GLOB '*-r'`,
  },
  {
    kind: "vcsSnapshots",
    number: 4,
    bit: 8,
    pattern: VCS_SNAPSHOT,
    sqlite: (name) => {
      // Each number becomes `()`, because GLOB has no repetition. Few names reach that.
      const numbers = `replace(${[...DIGITS].reduce((text, digit) => `replace(${text}, '${digit}', '()')`, name)}, ')(', '')`;
      const globs = ["cvs", "svn", "git", "hg"].flatMap((suffix) => [`'*)*_${suffix}[-_]*'`, `'*)*_${suffix}()[-_]*'`]);
      return `${name} GLOB '*[0-9]*_[cghs]*' AND (${globs.map((glob) => `${numbers} || '-' GLOB ${glob}`).join(" OR ")})`;
    },
  },
];

/**
 * A set of kinds: 0 none, 1 referrers, 2 dates, 3 epochs. Any other set has the number {@link BASE} and its bits: servers of
 * versions that know 0 to 3 alone count such tags as this one does, and those counters must belong to no other kind of rows.
 */
export type TagFamily = number;

const BASE = 256;
const firstFamilies: Readonly<Record<number, TagFamily>> = { 0: 0, 1: 1, 2: 2, 4: 3 };

function toFamily(bits: number): TagFamily {
  return firstFamilies[bits] ?? BASE + bits;
}

const isKnown = (bits: number) => (bits & 2) === 0 || (bits & 4) === 0;

// No name ends as a date and as an epoch.
const sets = Array.from({ length: 1 << rules.length }, (_, bits) => bits).filter(isKnown);

/** All families. */
export const tagFamilies: readonly TagFamily[] = sets.map(toFamily).sort((a, b) => a - b);

/** Classifies a tag by its name. */
export function classifyTag(name: string): TagFamily {
  return toFamily(rules.reduce((bits, { bit, pattern }) => (pattern.test(name) ? bits | bit : bits), 0));
}

/** The kinds that a list includes. */
export type IncludedKinds = Readonly<Record<HiddenKind, boolean>>;

/** Selects the families that a list shows. */
export function selectFamilies(included: IncludedKinds): TagFamily[] {
  const hidden = rules.reduce((bits, { kind, bit }) => (included[kind] ? bits : bits | bit), 0);
  return sets.filter((bits) => (bits & hidden) === 0).map(toFamily);
}

/** Names the kinds that a list includes in its page tokens: 0, which is every other tag, and their numbers. */
export function formatIncluded(included: IncludedKinds): string {
  return [0, ...rules.filter(({ kind }) => included[kind]).map(({ number }) => number)].join(" ");
}

/** Builds the SQL expression of {@link classifyTag}. */
export function buildFamilySql(dialect: Dialect, name: string): string {
  const isOf = ({ pattern, sqlite }: HiddenKindRule) =>
    dialect === "sqlite" ? sqlite(name) : `${name} ~ '${pattern.source}'`;
  const bits = rules.map((rule) => `CASE WHEN ${isOf(rule)} THEN ${rule.bit} ELSE 0 END`).join(" + ");
  const first = Object.entries(firstFamilies).map(([set, family]) => `WHEN ${set} THEN ${family}`);
  return `CASE ${bits} ${first.join(" ")} ELSE ${BASE} + ${bits} END`;
}
