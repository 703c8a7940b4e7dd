import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { normalizeLiteral, parseTemplate } from "../../../src/transport/http/http-rule.js";

const shapeOf = (text: string): string => {
  const { segments, variables, verb } = parseTemplate(text, "t");
  // A literal that looks like something else stands in quotes.
  const plain = (literal: string) => (/[*:=]/.test(literal) ? `"${literal}"` : literal);
  const words = segments.map((s) => (s.kind === "literal" ? plain(s.text) : s.kind === "star" ? "*" : "**"));
  const names = variables.map((v) => `${v.path.join(".")}@${v.first}-${v.last}`);
  return `${words.join(" ")} | ${names.join(" ")} | ${verb ?? ""}`;
};

const accepted: readonly { template: string; shape: string; reason: string }[] = [
  { template: "/v1", shape: "v1 |  | ", reason: "one literal" },
  { template: "/v1/groups", shape: "v1 groups |  | ", reason: "literals" },
  { template: "/*", shape: "* |  | ", reason: "a star alone" },
  { template: "/**", shape: "** |  | ", reason: "a double star alone" },
  { template: "/v1/*/x", shape: "v1 * x |  | ", reason: "a star between literals" },
  { template: "/v1/{id}", shape: "v1 * | id@1-1 | ", reason: "{id} means {id=*}" },
  { template: "/v1/{id=*}", shape: "v1 * | id@1-1 | ", reason: "the long form" },
  { template: "/v1/{id=fixed}", shape: "v1 fixed | id@1-1 | ", reason: "a variable may be a literal" },
  { template: "/v1/{id=**}", shape: "v1 ** | id@1-1 | ", reason: "any number of segments" },
  { template: "/v1/{name=a/*/b/*}", shape: "v1 a * b * | name@1-4 | ", reason: "several segments" },
  { template: "/v1/{name=a/**}", shape: "v1 a ** | name@1-2 | ", reason: "a prefix before the double star" },
  { template: "/v1/{name=**/b}", shape: "v1 ** b | name@1-2 | ", reason: "a tail within the variable" },
  { template: "/v1/{a.b.c}", shape: "v1 * | a.b.c@1-1 | ", reason: "a field path" },
  { template: "/v1/{a}/{b}", shape: "v1 * * | a@1-1 b@2-2 | ", reason: "two variables" },
  { template: "/v1/{a=**}/x", shape: "v1 ** x | a@1-1 | ", reason: "a literal behind the double star" },
  { template: "/v1/{a=**}/x/{b=*}/y", shape: "v1 ** x * y | a@1-1 b@3-3 | ", reason: "a variable behind it" },
  { template: "/v1/{a=**}/{b}/{c}", shape: "v1 ** * * | a@1-1 b@2-2 c@3-3 | ", reason: "two variables behind it" },
  { template: "/v1/**/x", shape: "v1 ** x |  | ", reason: "a bare double star with a tail" },
  { template: "/v1/groups:lookup", shape: "v1 groups |  | lookup", reason: "a verb behind a literal" },
  { template: "/v1/{id=**}:check", shape: "v1 ** | id@1-1 | check", reason: "a verb behind a variable" },
  { template: "/v1/*:go", shape: "v1 * |  | go", reason: "a verb behind a star" },
  { template: "/v1/%67roups", shape: "v1 groups |  | ", reason: "escapes of letters are undone" },
  { template: "/v1/a%2fb", shape: "v1 a%2Fb |  | ", reason: "other escapes are kept, upper case" },
  { template: "/.well-known/jwks.json", shape: ".well-known jwks.json |  | ", reason: "dots within literals" },
  {
    template: "/v1/a-b_c~d!$&'()+,;@",
    shape: "v1 a-b_c~d!$&'()+,;@ |  | ",
    reason: "what RFC 3986 allows in a segment",
  },
  { template: "/", shape: " |  | ", reason: "the root" },
  { template: "/{id}", shape: "* | id@0-0 | ", reason: "a variable alone" },
  { template: "/{id=**}:go", shape: "** | id@0-0 | go", reason: "all paths, and a verb" },
  { template: "/v1/a*", shape: 'v1 "a*" |  | ', reason: "a star within a literal" },
  { template: "/v1/*a/**b/c", shape: 'v1 "*a" "**b" c |  | ', reason: "stars before a literal" },
  { template: "/v1/a=b", shape: 'v1 "a=b" |  | ', reason: "an equals sign" },
  { template: "/v1/{a=b=c/*}", shape: 'v1 "b=c" * | a@1-2 | ', reason: "the first = of a variable separates" },
  { template: "/v1/a:b/c", shape: 'v1 "a:b" c |  | ', reason: "a colon before the last segment is text" },
  { template: "/v1/:a/c", shape: 'v1 ":a" c |  | ', reason: "at its beginning too" },
  { template: "/v1/*:a/c", shape: 'v1 "*:a" c |  | ', reason: "and behind a star" },
  { template: "/v1/{a=b:c/*}", shape: 'v1 "b:c" * | a@1-2 | ', reason: "so it is in a variable" },
  { template: "/v1/{a=b:c}", shape: 'v1 "b:c" | a@1-1 | ', reason: "even in the last one" },
  { template: "/v1/a:b:c", shape: 'v1 "a:b" |  | c', reason: "behind a literal the last colon begins the verb" },
  { template: "/v1/{a}:b:c", shape: "v1 * | a@1-1 | b:c", reason: "behind a variable the first one does" },
  { template: "/v1/*:b:c", shape: "v1 * |  | b:c", reason: "and behind a star" },
  { template: "/v1/**:b:c:d", shape: "v1 ** |  | b:c:d", reason: "and behind two" },
  { template: "/v1/{a=x/*}:b=c*", shape: "v1 x * | a@1-2 | b=c*", reason: "a verb of other characters" },
  { template: "/v1/{a}::b", shape: "v1 * | a@1-1 | :b", reason: "a verb that begins with a colon" },
  { template: "/v1/a%3Ab", shape: 'v1 "a:b" |  | ', reason: "an escaped colon begins no verb" },
  { template: "/v1/a%3Ab:c", shape: 'v1 "a:b" |  | c', reason: "nor beside one that does" },
  { template: "/v1/{a}:b%3Ac%20", shape: "v1 * | a@1-1 | b:c%20", reason: "escapes in a verb" },
  { template: "/v1/%2A%2a", shape: 'v1 "**" |  | ', reason: "escaped stars are text" },
  { template: "/v1/%C3%A4%e4%b8%80", shape: "v1 %C3%A4%E4%B8%80 |  | ", reason: "escaped UTF-8 is kept" },
  { template: "/v1/%40%3d%3B%2b", shape: 'v1 "@=;+" |  | ', reason: "escapes that a segment does not need are undone" },
  { template: "/v1/{_a1._b2}", shape: "v1 * | _a1._b2@1-1 | ", reason: "underscores and digits in names" },
];

for (const { template, shape, reason } of accepted) {
  test(`accepts ${template}: ${reason}`, () => assert.equal(shapeOf(template), shape));
}

const rejected: readonly { template: string; column: number; rule: string; reason: string }[] = [
  { template: "", column: 1, rule: "a template begins with /", reason: "nothing" },
  { template: "v1", column: 1, rule: "a template begins with /", reason: "relative" },
  { template: "/v1/", column: 4, rule: "a template must not end in /", reason: "trailing slash" },
  { template: "//v1", column: 2, rule: 'unexpected "/", expected a segment', reason: "an empty segment" },
  { template: "/v1//x", column: 5, rule: 'unexpected "/", expected a segment', reason: "an empty segment inside" },
  { template: "/v1/{a={b}}", column: 8, rule: "a variable cannot hold another", reason: "nested" },
  { template: "/v1/{a={b=*}/c}", column: 8, rule: "a variable cannot hold another", reason: "nested with more" },
  { template: "/v1/{a}/{a}", column: 10, rule: "variable a stands in the template twice", reason: "twice" },
  { template: "/v1/{a=**}/**", column: 12, rule: "** may stand in a template only once", reason: "two double stars" },
  { template: "/v1/{a=**}/{b=**}", column: 15, rule: "** may stand in a template only once", reason: "two, captured" },
  { template: "/v1/{a", column: 5, rule: "the variable is not closed", reason: "unclosed" },
  { template: "/v1/{a=*", column: 9, rule: "expected } at the end of the variable", reason: "unclosed after =" },
  { template: "/v1/{}", column: 6, rule: '"" is not a field path', reason: "no name" },
  { template: "/v1/{a..b}", column: 6, rule: '"a..b" is not a field path', reason: "an empty name" },
  { template: "/v1/{1a}", column: 6, rule: '"1a" is not a field path', reason: "a digit first" },
  { template: "/v1/{a-b}", column: 6, rule: '"a-b" is not a field path', reason: "a hyphen" },
  { template: "/v1/{a=}", column: 8, rule: 'unexpected "}", expected a segment', reason: "no segments" },
  { template: "/v1/{a=b/}", column: 10, rule: 'unexpected "}", expected a segment', reason: "slash at its end" },
  { template: "/v1/a}", column: 6, rule: 'unexpected "}"', reason: "stray brace" },
  { template: "/v1/{a}b", column: 8, rule: 'unexpected "b"', reason: "text behind a variable" },
  { template: "/v1/x{a}", column: 6, rule: 'unexpected "{"', reason: "text before a variable" },
  { template: "/v1/***", column: 5, rule: "a wildcard is * or **", reason: "three stars" },
  { template: "/v1/{a=***}", column: 8, rule: "a wildcard is * or **", reason: "three stars in a variable" },
  { template: "/v1/***:go", column: 5, rule: "a wildcard is * or **", reason: "three stars before a verb" },
  { template: "/v1/a:", column: 7, rule: "expected a verb", reason: "an empty verb" },
  { template: "/v1/{a}:", column: 9, rule: "expected a verb", reason: "an empty verb behind a variable" },
  { template: "/v1/*:", column: 7, rule: "expected a verb", reason: "an empty verb behind a star" },
  { template: "/v1/{a}:b/c", column: 10, rule: 'unexpected "/"', reason: "segments behind the verb of a variable" },
  { template: "/v1/a:b{c}", column: 8, rule: 'unexpected "{"', reason: "a variable behind a verb" },
  { template: "/:go", column: 2, rule: 'unexpected ":", expected a segment', reason: "a verb of the root" },
  { template: "/v1/a[b]", column: 6, rule: 'unexpected "["', reason: "what no segment may hold" },
  { template: "/v1/:x", column: 5, rule: 'unexpected ":", expected a segment', reason: "a verb without a segment" },
  {
    template: "/v1/a b",
    column: 6,
    rule: "a literal is printable ASCII, other characters percent-encoded",
    reason: "space",
  },
  {
    template: "/v1/ä",
    column: 5,
    rule: "a literal is printable ASCII, other characters percent-encoded",
    reason: "umlaut",
  },
  { template: "/v1/%zz", column: 5, rule: "% must be followed by two hex digits", reason: "a broken escape" },
  { template: "/v1/a%4", column: 6, rule: "% must be followed by two hex digits", reason: "a short escape" },
  { template: "/v1/a?b", column: 6, rule: 'unexpected "?"', reason: "a query" },
  { template: "/v1/a#b", column: 6, rule: 'unexpected "#"', reason: "a fragment" },
  { template: "/v1/..", column: 5, rule: "a segment cannot be . or ..", reason: "dots" },
  { template: "/v1/%2e", column: 5, rule: "a segment cannot be . or ..", reason: "encoded dots" },
  { template: "/v1/..:go", column: 5, rule: "a segment cannot be . or ..", reason: "dots before a verb" },
  { template: "/v1/{a=..}", column: 8, rule: "a segment cannot be . or ..", reason: "dots in a variable" },
];

for (const { template, column, rule, reason } of rejected) {
  test(`rejects ${template}: ${reason}`, () => {
    assert.throws(() => parseTemplate(template, "a.proto: p.S.M"), {
      name: "TypeError",
      message: `a.proto: p.S.M: path template "${template}", column ${column}: ${rule}`,
    });
  });
}

test("no text makes the parser throw anything but a TypeError that says where", () => {
  const alphabet = fc.constantFrom("/", "*", "**", "{", "}", "=", ":", "a", "b.c", "%41", "%", " ");
  fc.assert(
    fc.property(fc.array(alphabet, { maxLength: 12 }), (parts) => {
      try {
        const template = parseTemplate(parts.join(""), "t");
        assert.ok(template.segments.length > 0 || template.text === "/");
        for (const { first, last } of template.variables) assert.ok(first <= last && last < template.segments.length);
      } catch (error) {
        assert.ok(error instanceof TypeError && /, column \d+: /.test(error.message), String(error));
      }
    }),
  );
});

test("normalising a literal twice changes nothing more", () => {
  assert.equal(normalizeLiteral("%7euser%2D%2f%c3%a4"), "~user-%2F%C3%A4");
  fc.assert(fc.property(fc.webPath(), (path) => normalizeLiteral(normalizeLiteral(path)) === normalizeLiteral(path)));
});
