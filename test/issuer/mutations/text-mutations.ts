// Mutations of the text of a token, whatever it says: its bits, its base64url,
// its parts, its length. Where a wrong spelling might be taken for the right one
// it is also signed as it stands, so that nothing but the spelling is wrong.

import type { Random } from "../../support/openapi/random.js";
import { type GoodToken, type Mutation, type MutationClass, oneOf, segmentsOf, signText } from "./good-token.js";
import { flipBits } from "./wrong-values.js";

const ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

const flipText: Mutation = ({ text }, random) => flipBits(Buffer.from(text), random).toString("latin1");

// Of the bytes that a part stands for, so that the result is base64url in its one spelling.
const flipBytes: Mutation = ({ text }, random) => {
  const parts = segmentsOf(text);
  const at = random.int(parts.length);
  return parts.with(at, flipBits(Buffer.from(parts[at] ?? "", "base64url"), random).toString("base64url")).join(".");
};

/** Another spelling of one part; undefined where it has none of this sort. */
type Respelling = (part: string, random: Random) => string | undefined;

const respellings: readonly Respelling[] = [
  (part, random) => part + "=".repeat(1 + random.int(3)),
  // Padding as base64 has it, where it has any.
  (part) => (part.length % 4 === 0 ? undefined : part.padEnd(Math.ceil(part.length / 4) * 4, "=")),
  withSpareBits,
  (part) => (/[-_]/.test(part) ? part.replaceAll("-", "+").replaceAll("_", "/") : undefined),
  (part, random) =>
    insert(part, random.pick([" ", "\t", "\n", "\r\n", "\u0000", "%", "=", "+", "/", ",", ";", "\v"]), random),
  (part) => part.replace(/[A-Za-z0-9]/, (character) => `%${character.charCodeAt(0).toString(16)}`),
  (part, random) => `${part}${random.pick([...ALPHABET])}`,
  (part, random) => insert(part, random.pick([...ALPHABET]), random),
  (part) => part.slice(0, -1),
];

const respell: Mutation = ({ text }, random) => {
  const parts = segmentsOf(text);
  const at = random.int(parts.length);
  const part = random.pick(respellings)(parts[at] ?? "", random);
  return part === undefined ? undefined : parts.with(at, part).join(".");
};

const respellAndSign: Mutation = ({ text, key }, random) => {
  const [header, payload] = segmentsOf(text);
  const respelling = random.pick(respellings);
  const first = random.chance(0.3);
  const part = respelling(first ? header : payload, random);
  if (part === undefined) return undefined;
  return first ? signText(part, payload, key) : signText(header, part, key);
};

// The bits that the last character has beyond the last byte, set to something else.
function withSpareBits(part: string, random: Random): string | undefined {
  const spare = { 2: 4, 3: 2 }[part.length % 4];
  if (spare === undefined) return undefined;
  const last = ALPHABET.indexOf(part.slice(-1));
  return part.slice(0, -1) + (ALPHABET[last ^ (1 + random.int(2 ** spare - 1))] ?? "");
}

function insert(text: string, addition: string, random: Random): string {
  const at = random.int(text.length + 1);
  return text.slice(0, at) + addition + text.slice(at);
}

const partMutations: readonly ((good: GoodToken, random: Random) => string)[] = [
  ({ text }, random) => segmentsOf(text).toSpliced(random.int(3), 1).join("."),
  ({ text }, random) => segmentsOf(text).with(random.int(3), "").join("."),
  ({ text }, random) => {
    const parts = segmentsOf(text);
    return parts.toSpliced(random.int(4), 0, random.pick([...parts, "", "x"])).join(".");
  },
  ({ text }, random) => {
    const parts = segmentsOf(text);
    return random.pick([parts.toReversed(), [parts[1], parts[0], parts[2]], [parts[0], parts[0], parts[2]]]).join(".");
  },
  ({ text }, random) => text + random.pick(["..", ",", `.${text}`, `,${text}`, ` ${text}`, `, Bearer ${text}`]),
  ({ text }, random) => random.pick([".", "..", `${text}.`]) + text,
  ({ text }, random) => text.replace(".", random.pick(["", ",", ":", "%2e", "%2E", "/", " ."])),
];

// What looks like the character, sorts or folds like it, or is not seen at all.
const LOOKALIKES: Readonly<Record<string, string>> = {
  a: "\u0430",
  e: "\u0435",
  K: "\u212a",
  k: "\u212a",
  s: "\u017f",
  i: "\u0131",
  I: "\u0130",
  ".": "\u3002",
  "-": "\u2010",
  _: "\uff3f",
};
const INVISIBLE = ["\u200b", "\u200d", "\u202e", "\ufeff", "\u00a0", "\u0301", "\u00ad", "\ud800", "\u{1f600}"];

const unicode: Mutation = ({ text }, random) => {
  if (random.chance(0.4)) return insert(text, random.pick(INVISIBLE), random);
  const positions = [...text.matchAll(/[aeKksiI._-]/g)].map(({ index }) => index);
  const at = random.chance(0.8) && positions.length > 0 ? random.pick(positions) : random.int(text.length);
  const character = text.charAt(at);
  // Full-width forms lie at a fixed distance from ASCII.
  const other = LOOKALIKES[character] ?? String.fromCodePoint(character.charCodeAt(0) + 0xfee0);
  return text.slice(0, at) + other + text.slice(at + 1);
};

const length: Mutation = ({ text }, random) => {
  const at = random.int(text.length);
  const filler = random.pick(["A", ".", "=", "\u0000", "A.A."]);
  switch (random.int(6)) {
    case 0:
      return text.slice(0, at);
    case 1:
      return text.slice(at + 1);
    case 2:
      return text.slice(0, at) + text.slice(at + 1);
    case 3:
      return text + filler.repeat(1 + random.int(200));
    case 4:
      return filler.repeat(1 + random.int(6_000));
    default:
      return text.slice(0, at) + text.charAt(at) + text.slice(at);
  }
};

/** Mutations of the text. */
export const textMutations: readonly MutationClass[] = [
  { name: "bits of the text", weight: 8, mutate: flipText },
  { name: "bits of a part", weight: 8, mutate: flipBytes },
  { name: "base64url", weight: 4, mutate: respell },
  { name: "base64url, signed", weight: 4, mutate: respellAndSign },
  { name: "number of parts", weight: 3, mutate: oneOf(...partMutations) },
  { name: "unicode", weight: 2, mutate: unicode },
  { name: "length", weight: 2, mutate: length },
];
