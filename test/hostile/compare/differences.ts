// Compares what two services said. What each chose itself, such as uids, ids and tokens, must stand for the same thing on
// both sides wherever it comes up; times are not compared.
import type { JsonObject, JsonValue } from "@bufbuild/protobuf";

/** One thing that differs in a response. */
export interface Difference {
  /** Where it is, without indexes. */
  readonly path: string;
  /** What each side has there, in short, without what is different each time. */
  readonly a: string;
  readonly b: string;
}

/** Finds the differences of two responses. */
export type Compare = (a: JsonValue, b: JsonValue) => readonly Difference[];

const TIME = /\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z/g;
const JWT = /\beyJ[\w-]+\.[\w-]+\.[\w-]+/g;
/** A segment of a uid, the id of a request, of a token or of an event. */
const ID = /\b(?:[0-9a-f]{40}|[0-9a-f]{32}|[0-9a-f]{16})\b/g;
/** Times that are left, in texts and durations. */
const DURATION = /\b\d+(?:\.\d+)?(?= ?(?:s|ms|seconds?|minutes?)\b)/g;
/** Codes, and marks of pages, wherever they are in a text. */
const RANDOM = /[\w-]{40,}/g;
/** Opaque values, such as page tokens. */
const OPAQUE = /^"?[\w+/=-]{20,}"?$/;
/** Random, or depends on when it is asked: the audit log is sealed in the background. */
const UNSTEADY_KEYS = new Set(["sealed", "sequence", "salt"]);
/** Numbers that depend on it, where there must be one on both sides. */
const UNSTEADY_NUMBERS = new Set(["retry-after"]);
const SHOWN_CHARACTERS = 120;

/**
 * Creates a comparison.
 *
 * @param names what the sides call themselves, such as their addresses, which is not compared
 */
export function createCompare(names: { readonly a: readonly string[]; readonly b: readonly string[] }): Compare {
  const pairs = { a: new Map<string, string>(), b: new Map<string, string>() };

  // Whether two values may stand for the same thing: they do from now on.
  function unify(a: string, b: string): boolean {
    const known = pairs.a.get(a);
    const other = pairs.b.get(b);
    if (known !== undefined || other !== undefined) return known === b && other === a;
    pairs.a.set(a, b);
    pairs.b.set(b, a);
    return true;
  }

  function areSameTexts(a: string, b: string): boolean {
    if (a === b) return true;
    const [plainA, plainB] = [replaceAll(a, names.a), replaceAll(b, names.b)];
    const [shapeA, shapeB] = [shapeOf(plainA), shapeOf(plainB)];
    if (shapeA === shapeB) {
      const idsB = plainB.match(ID) ?? [];
      return (plainA.match(ID) ?? []).every((id, i) => unify(id, idsB[i] ?? ""));
    }
    return OPAQUE.test(a) && OPAQUE.test(b) && a.length === b.length && unify(a, b);
  }

  function compare(a: JsonValue | undefined, b: JsonValue | undefined, path: string, found: Difference[]): void {
    const key = path.slice(path.lastIndexOf(".") + 1);
    if (UNSTEADY_KEYS.has(key) || (UNSTEADY_NUMBERS.has(key) && [a, b].every((one) => /^\d+$/.test(String(one)))))
      return;
    if (typeof a === "string" && typeof b === "string") {
      if (!areSameTexts(a, b)) found.push({ path, a: show(a), b: show(b) });
    } else if (Array.isArray(a) && Array.isArray(b)) {
      if (a.length !== b.length) found.push({ path: `${path}.length`, a: String(a.length), b: String(b.length) });
      else for (const [i, one] of a.entries()) compare(one, b[i], `${path}[]`, found);
    } else if (isObject(a) && isObject(b)) {
      for (const name of new Set([...Object.keys(a), ...Object.keys(b)]))
        compare(a[name], b[name], path === "" ? name : `${path}.${name}`, found);
    } else if (a !== b) {
      found.push({ path, a: show(a), b: show(b) });
    }
  }

  return (a, b) => {
    const found: Difference[] = [];
    compare(a, b, "", found);
    // The same element of several in a list is one difference.
    const known = new Set<string>();
    return found.filter((one) => {
      const text = JSON.stringify(one);
      return known.has(text) ? false : known.add(text);
    });
  };
}

function isObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function replaceAll(text: string, names: readonly string[]): string {
  return names.reduce((left, name, i) => left.replaceAll(name, `<side ${i}>`), text);
}

/** A text without what is different each time. */
export function shapeOf(text: string): string {
  return text
    .replace(TIME, "<time>")
    .replace(JWT, (token) => `<token of ${token.length}>`)
    .replace(ID, (id) => `<id of ${id.length}>`)
    .replace(RANDOM, (value) => (isMixed(value) ? `<opaque of ${value.length}>` : value))
    .replace(DURATION, "<duration>");
}

// What a random source has written has letters of both cases and digits.
function isMixed(text: string): boolean {
  return /\d/.test(text) && /[A-Z]/.test(text) && /[a-z]/.test(text);
}

function show(value: JsonValue | undefined): string {
  if (value === undefined) return "absent";
  const text = typeof value === "string" ? value : JSON.stringify(value);
  const shape = shapeOf(text);
  const shown = OPAQUE.test(shape) && isMixed(shape) ? `<opaque of ${shape.length}>` : shape;
  return shown.length > SHOWN_CHARACTERS ? `${shown.slice(0, SHOWN_CHARACTERS)}…` : shown;
}
