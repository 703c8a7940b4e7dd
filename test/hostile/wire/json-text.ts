// Text that looks like JSON: by a grammar with wrong productions, and from good text by wrong tokens.
import type { Random } from "../../support/openapi/random.js";

const TOKENS = [
  ...['"', "{", "}", "[", "]", ":", ",", "\\", "null", "true", "false", "tru", "NaN", "Infinity"],
  ...["1e999", "-", "-0", "01", "1.", ".5", "+1", "0x1", "1e", "1E+", "9".repeat(400), "1e-400", "'", "/**/", "//"],
  ...[
    "\u0000",
    "\u0001",
    "\n",
    "\ufeff",
    "\u2028",
    "\u00a0",
    "\u00e9",
    "\\u0000",
    "\\ud800",
    "\\udc00\\ud800",
    "\\x41",
    "\\u12",
  ],
  ...['"a":1,', '"__proto__":{},', '"name":"a",', '"":null,', "[[", "]]", "{{", "}}", ",,", "::"],
];
const NUMBERS = [
  ...["0", "-0", "1", "-1", "1.5", "1e3", "2147483648", "-2147483649", "9007199254740993", "9223372036854775808"],
  ...["1e400", "-1e-400", "0.1e1", "1E5", "01", "1.", "-", "+1", "0b1", "1_000", "1n", "9".repeat(2_000)],
];
const STRINGS = [
  ...["", "a", "name", "yesterday", "2026-01-31T12:00:00Z", "9999-12-31T23:59:60Z", "1s", "-1.5s", "1e9s", "a,b", "*"],
  ...["0123456789abcdef", "__proto__", "\\u0000", "\\ud83d", "\\ud83d\\ude00", "\\/", "\\b\\f\\n\\r\\t", "\\", "\\q"],
  ...["\u0007", "\u00e9", "\ud83d\ude00", "A===", "_-8=", "%00", "../..", "a".repeat(5_000), "\u0301".repeat(500)],
];
const NAMES = [
  "name",
  "Name",
  "uid",
  "id",
  "",
  "a",
  "__proto__",
  "constructor",
  "toString",
  "@type",
  "\\u006eame",
  "name.x",
];
const SPACES = ["", "", "", "", " ", "\n", "\t", "\r\n", "\u00a0", "\u000b", "\ufeff"];

/** Text by the grammar. @param names what the properties of an object may be called */
export function jsonText(names: readonly string[], random: Random): string {
  if (random.chance(0.03)) return extremeText(names, random);
  return valueText(names, random, 0) + (random.chance(0.03) ? random.pick(TOKENS) : "");
}

function valueText(names: readonly string[], random: Random, depth: number): string {
  const space = () => (random.chance(0.1) ? random.pick(SPACES) : "");
  const inner = () => space() + valueText(names, random, depth + 1) + space();
  const name = () => (names.length > 0 && random.chance(0.7) ? random.pick(names) : random.pick(NAMES));
  const kind = depth === 0 && random.chance(0.8) ? 0 : random.int(depth > 5 ? 8 : 10) + 2;
  const count = random.int(4);
  const join = (parts: readonly string[]) => parts.join(random.chance(0.97) ? "," : random.pick([",,", "", ";"]));
  switch (kind) {
    case 0:
    case 10: {
      const quote = random.chance(0.97) ? '"' : random.pick(["'", ""]);
      const colon = random.chance(0.97) ? ":" : random.pick(["=", "::", ""]);
      const property = () => `${space()}${quote}${name()}${quote}${space()}${colon}${inner()}`;
      return `{${join(Array.from({ length: count + 1 }, property))}${random.chance(0.97) ? "}" : random.pick(["", ",}", "]"])}`;
    }
    case 11:
      return `[${join(Array.from({ length: count }, inner))}${random.chance(0.97) ? "]" : random.pick(["", ",]", "}"])}`;
    case 2:
    case 3:
      return random.pick(NUMBERS);
    case 4:
      return random.pick(["true", "false", "null", "True", "nul", "NaN"]);
    default:
      return `"${random.pick(STRINGS)}${random.chance(0.98) ? '"' : ""}`;
  }
}

function extremeText(names: readonly string[], random: Random): string {
  const name = names.length > 0 ? random.pick(names) : "name";
  const depth = random.pick([62, 63, 64, 65, 66, 1_000, 20_000]);
  return random.pick<() => string>([
    () => "[".repeat(depth),
    () => `{"${name}":${"[".repeat(depth)}${"]".repeat(depth)}}`,
    () => `${`{"${name}":`.repeat(depth)}1${"}".repeat(depth)}`,
    () => `{${Array.from({ length: 2_000 }, (_, i) => `"a${i}":${i}`).join(",")}}`,
    () => `{"${name}":[${"1,".repeat(5_000)}1]}`,
    () => `{"${name}":"${"\\u0061".repeat(10_000)}"}`,
    () => `{${Array.from({ length: 500 }, () => `"${name}":1`).join(",")}}`,
    () => " ".repeat(50_000),
    () => `{"${"k".repeat(50_000)}":1}`,
  ])();
}

/** Text with one to three tokens added, removed or put in place of others. */
export function spoilText(text: string, random: Random): string {
  let spoilt = text;
  for (let times = 1 + random.int(3); times > 0; times--) {
    // Mostly where a token begins or ends.
    const marks = [...spoilt.matchAll(/["{}[\]:,]/g)].map(({ index }) => index + random.int(2));
    const at = marks.length > 0 && random.chance(0.8) ? random.pick(marks) : random.int(spoilt.length + 1);
    const removed = random.chance(0.5) ? 0 : 1 + random.int(random.pick([1, 8]));
    spoilt = spoilt.slice(0, at) + (random.chance(0.8) ? random.pick(TOKENS) : "") + spoilt.slice(at + removed);
  }
  return spoilt;
}
