// Mutations of how the payload is written, all signed by the right key: JSON that
// readers understand differently, or no JSON at all. Which of them matter to a
// reader is for the reference to say: foreign issuers may space theirs.

import type { Random } from "../../support/openapi/random.js";
import { encodePart } from "../strangers/token-kit.js";
import { type Mutation, type MutationClass, segmentsOf, signText } from "./good-token.js";
import { flipBits } from "./wrong-values.js";

/** JSON in which a member of the outermost object stands twice, once with another value or the same. */
export function repeatMember(json: string, random: Random): string {
  const members = Object.entries(JSON.parse(json) as object).map(([name, value]): [string, string] => [
    JSON.stringify(name),
    JSON.stringify(value),
  ]);
  const [name, value] = random.pick(members);
  const other = random.pick([value, "null", '"x"', "0", "[]", JSON.stringify(JSON.stringify(value))]);
  // The same name to a reader that knows escapes, and another to one that does not.
  const escaped = `"\\u00${name.charCodeAt(1).toString(16)}${name.slice(2)}`;
  const at = random.int(members.length + 1);
  const doubled = members.toSpliced(at, 0, [random.chance(0.7) ? name : escaped, other]);
  return `{${doubled.map((member) => member.join(":")).join()}}`;
}

/** JSON with white space somewhere between its tokens. */
export function addSpace(json: string, random: Random): string {
  const paths = [...json.matchAll(/(?<=[{}[\],])|(?<=":)|(?=[{}[\]])/g)].map(({ index }) => index);
  const at = random.pick(paths);
  return json.slice(0, at) + random.pick([" ", "\n", "\t", "\r\n", "  "]) + json.slice(at);
}

/** More nesting than a reader needs to allow, and than one that calls itself can bear. */
const DEPTHS = [70, 200, 2_000];

const encodeOtherwise: Mutation = ({ claims, text, key }, random) => {
  const json = JSON.stringify(claims);
  const open = json.slice(0, -1);
  const payload = random.pick([
    () => repeatMember(json, random),
    () => addSpace(json, random),
    () => json.slice(0, random.int(json.length)),
    () => json.replace(/"([a-z])/, (_, letter: string) => `"\\u00${letter.charCodeAt(0).toString(16)}`),
    () => nest(open, random.pick(DEPTHS), random),
  ])();
  return signText(segmentsOf(text)[0], encodePart(payload), key);
};

function nest(open: string, depth: number, random: Random): string {
  const [first, last] = random.pick([
    ["[", "]"],
    ['{"x":', "}"],
  ] as const);
  return `${open},"x":${first.repeat(depth)}0${last.repeat(depth)}}`;
}

// Most of what these say is something else; what happens to say nothing wrong is not counted.
const flipPayload: Mutation = ({ claims, text, key }, random) =>
  signText(segmentsOf(text)[0], encodePart(flipBits(Buffer.from(JSON.stringify(claims)), random)), key);

const tooLong: Mutation = ({ claims, text, key }, random) =>
  signText(segmentsOf(text)[0], encodePart({ ...claims, x: "x".repeat(12_500 + random.int(500)) }), key);

/** Mutations of how the payload is written. */
export const payloadMutations: readonly MutationClass[] = [
  { name: "payload text, signed", weight: 8, mutate: encodeOtherwise },
  { name: "payload bits, signed", weight: 6, mutate: flipPayload },
  { name: "payload too long, signed", weight: 1, mutate: tooLong },
];
