// A JSON parser (RFC 8259) that rejects what JSON.parse accepts and parsers read differently: repeated names, deep
// nesting, lone surrogates, U+0000, numbers outside the range of a double, and a byte order mark (RFC 7493).

import { invalidArgument } from "./errors.js";

export type JsonValue = number | string | boolean | null | JsonObject | JsonValue[];

export type JsonObject = { [name: string]: JsonValue };

export function isJsonObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The deepest nesting of objects and arrays. */
export const MAX_JSON_DEPTH = 64;

const NUMBER = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y;
const LONE_SURROGATE = /[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/;

/**
 * Parses a JSON text. Objects have no prototype.
 *
 * @param what the field in errors that cannot name one within the text
 * @param locate describes where the text stops being JSON; by default `at position 7`
 * @throws ApiError INVALID_ARGUMENT.
 */
export function parseStrictJson(text: string, what: string, locate = formatPosition): JsonValue {
  return new Reader(text, what, locate).document();
}

function formatPosition(index: number): string {
  return `at position ${index + 1}`;
}

// The members whose numbers have no exact double, and became a whole number by that: such as 0.99999999999999999999.
const rounded = new WeakMap<object, Set<string | number>>();

/** Whether the text of a member was another number than the whole number that it was read as. */
export function isRounded(container: object, key: string | number): boolean {
  return rounded.get(container)?.has(key) === true;
}

class Reader {
  readonly #text: string;
  readonly #what: string;
  readonly #locate: (index: number) => string;
  readonly #path: (string | number)[] = [];
  #at = 0;
  /** Whether the value that was read last is a number that was rounded to a whole one. */
  #isRounded = false;

  constructor(text: string, what: string, locate: (index: number) => string) {
    this.#text = text;
    this.#what = what;
    this.#locate = locate;
  }

  document(): JsonValue {
    if (this.#text.charCodeAt(0) === 0xfeff) this.#reject("must not begin with a byte order mark");
    this.#space();
    const value = this.#value(0);
    this.#space();
    if (this.#at < this.#text.length) this.#rejectSyntax();
    return value;
  }

  #value(depth: number): JsonValue {
    switch (this.#text.charCodeAt(this.#at)) {
      case 0x22:
        return this.#string();
      case 0x7b:
        return this.#object(depth + 1);
      case 0x5b:
        return this.#array(depth + 1);
      case 0x74:
        return this.#word("true", true);
      case 0x66:
        return this.#word("false", false);
      case 0x6e:
        return this.#word("null", null);
      default:
        return this.#number();
    }
  }

  #object(depth: number): JsonValue {
    this.#deepen(depth);
    const object: Record<string, JsonValue> = Object.create(null);
    if (this.#closes(0x7d)) return object;
    for (;;) {
      if (this.#text.charCodeAt(this.#at) !== 0x22) this.#rejectSyntax();
      const key = this.#string();
      this.#path.push(key);
      if (key in object) this.#reject("is given twice");
      if (key === "__proto__") this.#reject("is not allowed as a name");
      this.#space();
      if (this.#text.charCodeAt(this.#at) !== 0x3a) this.#rejectSyntax();
      this.#at++;
      this.#space();
      object[key] = this.#value(depth);
      if (this.#isRounded) this.#noteRounded(object, key);
      this.#path.pop();
      if (this.#ends(0x7d)) return object;
    }
  }

  #array(depth: number): JsonValue {
    this.#deepen(depth);
    const array: JsonValue[] = [];
    if (this.#closes(0x5d)) return array;
    for (;;) {
      this.#path.push(array.length);
      array.push(this.#value(depth));
      if (this.#isRounded) this.#noteRounded(array, array.length - 1);
      this.#path.pop();
      if (this.#ends(0x5d)) return array;
    }
  }

  #deepen(depth: number): void {
    if (depth > MAX_JSON_DEPTH) {
      this.#path.length = 0;
      this.#reject(`must not nest deeper than ${MAX_JSON_DEPTH} levels`);
    }
    this.#at++;
    this.#space();
  }

  #closes(bracket: number): boolean {
    if (this.#text.charCodeAt(this.#at) !== bracket) return false;
    this.#at++;
    return true;
  }

  // After a member: true at the closing bracket, false at a comma.
  #ends(bracket: number): boolean {
    this.#space();
    const code = this.#text.charCodeAt(this.#at);
    if (code !== bracket && code !== 0x2c) this.#rejectSyntax();
    this.#at++;
    if (code === bracket) return true;
    this.#space();
    return false;
  }

  #string(): string {
    const start = ++this.#at;
    const text = this.#text;
    let escaped = false;
    for (let i = start; i < text.length; i++) {
      const code = text.charCodeAt(i);
      if (code === 0x22) {
        this.#at = i + 1;
        return escaped ? this.#unescape(text.slice(start - 1, i + 1)) : text.slice(start, i);
      }
      if (code < 0x20) {
        this.#at = i;
        this.#rejectSyntax();
      }
      if (code === 0x5c) {
        escaped = true;
        i++;
      }
    }
    this.#at = text.length;
    return this.#rejectSyntax();
  }

  #unescape(literal: string): string {
    let value: string;
    try {
      value = JSON.parse(literal) as string;
    } catch {
      return this.#rejectSyntax();
    }
    if (value.includes("\0")) this.#reject("must not hold U+0000");
    if (LONE_SURROGATE.test(value)) this.#reject("must not hold half a surrogate pair");
    return value;
  }

  #number(): number {
    NUMBER.lastIndex = this.#at;
    const literal = NUMBER.exec(this.#text)?.[0];
    if (literal === undefined) return this.#rejectSyntax();
    const value = Number(literal);
    if (!Number.isFinite(value)) this.#reject("must be a number that a double can hold");
    this.#at += literal.length;
    this.#isRounded = Number.isSafeInteger(value) && !isExact(literal, value);
    return value;
  }

  #noteRounded(container: object, key: string | number): void {
    this.#isRounded = false;
    const keys = rounded.get(container) ?? new Set();
    rounded.set(container, keys.add(key));
  }

  #word<T>(word: string, value: T): T {
    if (!this.#text.startsWith(word, this.#at)) this.#rejectSyntax();
    this.#at += word.length;
    return value;
  }

  #space(): void {
    for (;;) {
      const code = this.#text.charCodeAt(this.#at);
      if (code !== 0x20 && code !== 0x0a && code !== 0x0d && code !== 0x09) return;
      this.#at++;
    }
  }

  #rejectSyntax(): never {
    const where = this.#at < this.#text.length ? this.#locate(this.#at) : "at its end";
    throw invalidArgument({ field: this.#what, rule: `is not valid JSON ${where}` });
  }

  #reject(rule: string): never {
    let field = "";
    for (const part of this.#path) {
      field += typeof part === "number" ? `[${part}]` : field === "" ? part : `.${part}`;
    }
    if (field === "" || field.length > 200) field = this.#what;
    throw invalidArgument({ field, rule });
  }
}

/** The longest literal that is compared with its double: the pattern below takes quadratic time. */
const MAX_COMPARED_LITERAL = 64;

// Whether a literal is exactly this whole number of at most 16 digits. A very long one counts as another number.
function isExact(literal: string, value: number): boolean {
  if (literal.length > MAX_COMPARED_LITERAL) return false;
  const [, whole = "", fraction = "", exponent = "0"] = /^-?(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(literal) ?? [];
  if (fraction === "" && exponent === "0") return true;
  const digits = `${whole}${fraction}`.replace(/^0+/, "");
  const significant = digits.replace(/0+$/, "");
  const zeros = digits.length - significant.length - fraction.length + Number(exponent);
  if (significant === "") return true;
  return zeros >= 0 && `${significant}${"0".repeat(zeros)}` === String(Math.abs(value));
}

/**
 * Whether `text` holds at most `max` values if it is JSON. It counts commas and opening brackets wherever they stand,
 * also within strings, so it costs far less than parsing and never counts too few values.
 */
export function hasFewValues(text: string, max: number): boolean {
  let left = max;
  for (let i = 0; i < text.length && left > 0; i++) {
    const code = text.charCodeAt(i);
    if (code === COMMA || code === BRACKET || code === BRACE) left--;
  }
  return left > 0;
}

const [COMMA, BRACKET, BRACE] = [0x2c, 0x5b, 0x7b];

// A byte order mark stays in the text, where the parser rejects it.
const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/**
 * Parses bytes that hold a JSON object in UTF-8. Neither the object nor what is in it has a prototype.
 *
 * @param maxValues how many values the object may hold, nested ones included
 * @returns undefined for everything else, and for an object that two parsers could read differently, such as one
 * with a repeated name
 */
export function parseJsonObject(
  bytes: Uint8Array,
  maxValues = Number.POSITIVE_INFINITY,
): Readonly<JsonObject> | undefined {
  let value: JsonValue;
  try {
    const text = utf8.decode(bytes);
    if (!hasFewValues(text, maxValues)) return undefined;
    value = parseStrictJson(text, "json");
  } catch {
    return undefined;
  }
  return typeof value === "object" && value !== null && !Array.isArray(value) ? value : undefined;
}
