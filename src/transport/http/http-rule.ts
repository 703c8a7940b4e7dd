// The grammar of path templates, as google/api/http.proto defines it:
//
// Template  = "/" [ Segments [ Verb ] ]
// Segments  = Segment { "/" Segment }
// Segment   = "*" | "**" | LITERAL | Variable
// Variable  = "{" FieldPath [ "=" Segments ] "}"
// FieldPath = IDENT { "." IDENT }
// Verb      = ":" LITERAL
//
// This service allows three more things. `**` may be anywhere, once, with a tail of fixed length after it, because a
// uid may have any number of segments and the name of a resource in it may follow. A literal may contain whatever RFC
// 3986 allows in a segment, such as `:`, `=` and `*`. And `/` alone is the root.
//
// After a wildcard or a variable the verb begins at the first colon, and may contain more of them; after a literal it
// begins at the last one.

/** One segment of a path. The `text` of a literal is normalized by {@link normalizeLiteral}. */
export type Segment =
  | { readonly kind: "literal"; readonly text: string }
  | { readonly kind: "star" }
  | { readonly kind: "star2" };

/** A variable and the segments it captures. */
export interface TemplateVariable {
  /** The field path, in the names of the proto. */
  readonly path: readonly string[];
  /** Index of the first segment it captures. */
  readonly first: number;
  /** Index of the last segment it captures. */
  readonly last: number;
  /** Its column in the template, counted from 1. */
  readonly column: number;
  /** How many segments it captures: one, a fixed number or, with `**`, any number. */
  readonly span: "one" | "fixed" | "any";
}

/** A parsed path template. */
export interface Template {
  readonly text: string;
  readonly segments: readonly Segment[];
  readonly variables: readonly TemplateVariable[];
  /** The index of the `**` segment, or -1. */
  readonly star2: number;
  /** Whether `**` is part of a variable and must therefore match at least one segment. */
  readonly star2Captured: boolean;
  /** The verb without its colon, normalized by {@link normalizeLiteral}; undefined without one. */
  readonly verb: string | undefined;
  /** Whether the path ends in a slash, which only templates of {@link omitWildcard} do. */
  readonly trailingSlash: boolean;
}

const IDENT = /^[A-Za-z_][A-Za-z0-9_]*$/;
const ESCAPE = /^%[0-9A-Fa-f]{2}/;
const PCHAR = /^[A-Za-z0-9._~!$&'()*+,;=:@-]$/;
const WILDCARD = /^(\*\*?)(?::|$)/;

/**
 * Parses a path template.
 *
 * @param where the owner of the template in errors: file and method
 * @throws TypeError naming `where` and the column of the syntax error, counted from 1
 */
export function parseTemplate(text: string, where: string): Template {
  const segments: Segment[] = [];
  const variables: TemplateVariable[] = [];
  const names = new Set<string>();
  let at = 0;
  let star2 = -1;
  let star2Captured = false;
  let verb: string | undefined;

  const fail = (rule: string, column = at): never => {
    throw new TypeError(`${where}: path template "${text}", column ${column + 1}: ${rule}`);
  };

  // Reads the characters that RFC 3986 allows in a segment.
  const readText = (what: string): string => {
    const start = at;
    while (at < text.length) {
      const char = text.charAt(at);
      if (char <= " " || char > "~") fail("a literal is printable ASCII, other characters percent-encoded");
      if (char === "%" && !ESCAPE.test(text.slice(at, at + 3))) fail("% must be followed by two hex digits");
      if (char !== "%" && !PCHAR.test(char)) break;
      at++;
    }
    if (at === start) fail(at < text.length ? `unexpected "${text.charAt(at)}", expected ${what}` : `expected ${what}`);
    return text.slice(start, at);
  };

  const segment = (inVariable: boolean): void => {
    if (text.charAt(at) === "{") {
      if (inVariable) fail("a variable cannot hold another");
      variable();
      return;
    }
    const start = at;
    const word = withoutVerb(readText("a segment"), start, inVariable);
    if (word === "**") {
      if (star2 >= 0) fail("** may stand in a template only once", start);
      star2 = segments.length;
      star2Captured = inVariable;
      segments.push({ kind: "star2" });
    } else if (word === "*") {
      segments.push({ kind: "star" });
    } else {
      if (/^\*+$/.test(word)) fail("a wildcard is * or **", start);
      const literal = normalizeLiteral(word);
      if (literal === "." || literal === "..") fail("a segment cannot be . or ..", start);
      segments.push({ kind: "literal", text: literal });
    }
  };

  // Cuts the verb off the last segment, and notes it.
  const withoutVerb = (word: string, start: number, inVariable: boolean): string => {
    if (inVariable || at < text.length) return word;
    const wildcard = WILDCARD.exec(word)?.[1];
    const colon = wildcard === undefined ? word.lastIndexOf(":") : word.indexOf(":");
    if (colon < 0) return word;
    if (colon === 0) fail('unexpected ":", expected a segment', start);
    if (colon === word.length - 1) fail("expected a verb");
    verb = normalizeLiteral(word.slice(colon + 1));
    return word.slice(0, colon);
  };

  const variable = (): void => {
    const column = at;
    const end = text.slice(at).search(/[=}]/);
    if (end < 0) fail("the variable is not closed");
    const name = text.slice(at + 1, at + end);
    const path = name.split(".");
    if (!path.every((part) => IDENT.test(part))) fail(`"${name}" is not a field path`, at + 1);
    if (names.has(name)) fail(`variable ${name} stands in the template twice`, at + 1);
    names.add(name);
    at += end;
    const first = segments.length;
    if (text.charAt(at) === "=") {
      at++;
      segment(true);
      while (text.charAt(at) === "/") {
        at++;
        segment(true);
      }
    } else {
      segments.push({ kind: "star" });
    }
    if (text.charAt(at) !== "}") fail("expected } at the end of the variable");
    at++;
    const last = segments.length - 1;
    const span = star2 >= first ? "any" : first === last ? "one" : "fixed";
    variables.push({ path, first, last, column: column + 1, span });
  };

  if (text.charAt(0) !== "/") fail("a template begins with /");
  while (text !== "/" && at < text.length && text.charAt(at) === "/") {
    at++;
    if (at === text.length && segments.length > 0) fail("a template must not end in /", at - 1);
    segment(false);
  }
  if (text.charAt(at) === ":") {
    at++;
    verb = normalizeLiteral(readText("a verb"));
  }
  if (text !== "/" && at < text.length) fail(`unexpected "${text.charAt(at)}"`);
  return { text, segments, variables, star2, star2Captured, verb, trailingSlash: false };
}

/**
 * Builds the template of the paths on which the `**` at the end matches no segment, such as `/v1/things/` for
 * `/v1/things/{parent=**}`. Its last variable captures nothing and is left out.
 *
 * @param where the owner of the template in errors
 * @throws TypeError when the template does not end in a variable that is `**` alone
 */
export function omitWildcard({ text, segments, variables, star2, verb }: Template, where: string): Template {
  const last = variables.at(-1);
  if (verb !== undefined || star2 !== segments.length - 1 || last?.first !== star2 || last.last !== star2) {
    throw new TypeError(`${where}: path template "${text}" does not end in a variable that is **`);
  }
  return {
    text: text.slice(0, last.column - 1),
    segments: segments.slice(0, star2),
    variables: variables.slice(0, -1),
    star2: -1,
    star2Captured: false,
    verb: undefined,
    // The root is `/`, which has no other form.
    trailingSlash: star2 > 0,
  };
}

/**
 * Normalizes a literal, so that those of templates and requests can be compared: characters that a segment may contain
 * are decoded, all other escapes get upper-case digits (RFC 3986, sections 3.3 and 6.2.2). Clients differ in which of
 * `:`, `=`, `*`, `@` they escape, and these separate nothing in a literal.
 */
export function normalizeLiteral(text: string): string {
  if (!text.includes("%")) return text;
  return text.replace(/%[0-9A-Fa-f]{2}/g, (triplet) => {
    const char = String.fromCharCode(Number.parseInt(triplet.slice(1), 16));
    return PCHAR.test(char) ? char : triplet.toUpperCase();
  });
}
