// Path templates as google/api/http.proto reads them, the slow and plain way: what the route table is compared with.
import fc from "fast-check";

/** A segment: `*`, `**` or the decoded text of a literal. */
export type Part = { readonly kind: "star" | "star2" } | { readonly kind: "literal"; readonly text: string };

/** A template in parts: each item is a segment, or the segments of a variable. */
export interface ModelTemplate {
  readonly items: readonly (Part | readonly Part[])[];
  /** The decoded verb, or "" for none. */
  readonly verb: string;
}

/** What a template matches a path with. */
export interface ModelMatch {
  readonly captures: readonly string[];
}

/** The segments of a template, those of variables among them. */
export const segmentsOf = ({ items }: ModelTemplate): Part[] => items.flat() as Part[];

/** How much of a path a variable takes. */
export function spanOf(item: readonly Part[]): "one" | "fixed" | "any" {
  if (item.some(({ kind }) => kind === "star2")) return "any";
  return item.length === 1 ? "one" : "fixed";
}

/** The text of a template. */
export function templateText({ items, verb }: ModelTemplate): string {
  const part = (one: Part) => (one.kind === "literal" ? escapeText(one.text) : one.kind === "star" ? "*" : "**");
  const segments = items.map((item, i) =>
    Array.isArray(item) ? `{v${i}=${item.map(part).join("/")}}` : part(item as Part),
  );
  return `/${segments.join("/")}${verb === "" ? "" : `:${escapeText(verb, false)}`}`;
}

// All but letters and digits, so that no character can be taken for one of the grammar.
function escapeText(text: string, colons = true): string {
  const escaped = [...Buffer.from(text)].map((byte) => {
    const char = String.fromCharCode(byte);
    return /[A-Za-z0-9]/.test(char) ? char : `%${byte.toString(16).padStart(2, "0")}`;
  });
  return colons ? escaped.join("") : escaped.join("").replaceAll("%3a", ":");
}

/** All ways in which a template matches a path without dots and empty segments, by the length of the verb. */
export function modelMatch(template: ModelTemplate, path: string): ModelMatch | undefined {
  const cut = withoutVerb(path, template.verb);
  if (cut === undefined) return undefined;
  const segments = cut === "/" ? [] : cut.slice(1).split("/");
  if (segments.includes("")) return undefined;
  const parts = segmentsOf(template);
  const spare = segments.length - parts.length;
  const star2 = parts.findIndex(({ kind }) => kind === "star2");
  if (star2 < 0 ? spare !== 0 : spare < -1) return undefined;
  const captures: string[] = [];
  let at = 0;
  const take = (part: Part): string[] | undefined => {
    const taken = segments.slice(at, at + (part.kind === "star2" ? spare + 1 : 1));
    at += taken.length;
    if (part.kind === "literal" && decodeURIComponent(taken[0] ?? "") !== part.text) return undefined;
    return taken;
  };
  for (const item of template.items) {
    const taken = (Array.isArray(item) ? (item as readonly Part[]) : [item as Part]).map(take);
    if (taken.includes(undefined)) return undefined;
    if (!Array.isArray(item)) continue;
    const raw = taken.flat() as string[];
    const holdsStar2 = item.some(({ kind }) => kind === "star2");
    if (holdsStar2 && (taken[item.findIndex(({ kind }) => kind === "star2")] as string[]).length === 0)
      return undefined;
    captures.push(
      spanOf(item) === "fixed"
        ? raw.map((one) => one.split(/%2f/i).map(decodeURIComponent).join("%2F")).join("/")
        : raw.map(decodeURIComponent).join("/"),
    );
  }
  return at === segments.length ? { captures } : undefined;
}

function withoutVerb(path: string, verb: string): string | undefined {
  if (verb === "") return path;
  const begin = path.lastIndexOf("/") + 1;
  for (let at = begin + 1; at < path.length; at++) {
    const rest = path.slice(at);
    // An escape is not to be cut apart.
    if (/%.?$/.test(path.slice(0, at)) || !/^(?::|%3a)/i.test(rest)) continue;
    if (decodeURIComponent(rest) === `:${verb}`) return path.slice(0, at);
  }
  return undefined;
}

const RANKS = { literal: 0, star: 1, star2: 2 };

/** Which of two templates that match the same path is to win: negative for the first. */
export function compareTemplates(a: ModelTemplate, b: ModelTemplate): number {
  if (a.verb !== b.verb) return b.verb.length - a.verb.length;
  const [left, right] = [segmentsOf(a), segmentsOf(b)];
  for (let i = 0; i < left.length && i < right.length; i++) {
    const difference = RANKS[left[i]?.kind ?? "star2"] - RANKS[right[i]?.kind ?? "star2"];
    if (difference !== 0) return difference;
  }
  const [longer, shorter] = left.length > right.length ? [left, right] : [right, left];
  // An end comes before a `**` that takes nothing, otherwise more segments come first.
  const endWins = longer[shorter.length]?.kind === "star2";
  return (right.length - left.length) * (endWins ? -1 : 1);
}

const word = fc.constantFrom("a", "b", "a:b", "=", "*", "**", "ä", "a/b", "%2F", "a.b");
const literal = word.map((text): Part => ({ kind: "literal", text }));
const star = fc.constant<Part>({ kind: "star" });
const simple = fc.oneof(literal, star);
const item = fc.oneof(
  { weight: 3, arbitrary: simple },
  { weight: 2, arbitrary: fc.array(simple, { minLength: 1, maxLength: 3 }) },
);
const star2 = fc.constant<Part>({ kind: "star2" });
const deepItem = fc.oneof(
  star2,
  fc.tuple(fc.array(simple, { maxLength: 2 }), fc.array(simple, { maxLength: 1 })).map(([before, after]) => {
    return [...before, { kind: "star2" } as Part, ...after];
  }),
);

/** Templates of all shapes, over so few words that they overlap. */
export const anyTemplate: fc.Arbitrary<ModelTemplate> = fc
  .record({
    before: fc.array(item, { maxLength: 3 }),
    deep: fc.option(deepItem, { nil: undefined }),
    after: fc.array(item, { maxLength: 2 }),
    verb: fc.constantFrom("", "", "", "go", "a", "a:go", "*=", "go on"),
  })
  .map(({ before, deep, after, verb }) => ({ items: [...before, ...(deep ? [deep] : []), ...after], verb }))
  .filter(({ items }) => items.length > 0);
