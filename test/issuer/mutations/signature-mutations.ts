// Mutations of the signature, over a header and a payload that are as they were.
//
// One change of a signature is none: for every (r, s) that verifies, (r, n - s)
// verifies as well, without the key, and says the same of the same text. That
// pair is as good, since no token is told apart from others by its text: what
// names it is its `jti`. So it is not among these but in as-good.ts.
import { createHmac, createPublicKey, type KeyObject, sign } from "node:crypto";
import type { Random } from "../../support/openapi/random.js";
import { strangeKeys } from "../strangers/strange-keys.js";
import { type GoodToken, type MutationClass, segmentsOf, signatureOver } from "./good-token.js";
import { flipBits } from "./wrong-values.js";

/** The order of the group of P-256: r and s of a signature are below it. */
const ORDER = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n;
const FIELD = 0xffffffff00000001000000000000000000000000ffffffffffffffffffffffffn;

function numbersOf(signature: Buffer): [r: bigint, s: bigint] {
  const number = (bytes: Buffer) => BigInt(`0x${bytes.toString("hex")}`);
  return [number(signature.subarray(0, 32)), number(signature.subarray(32))];
}

function bytesOf(...numbers: readonly bigint[]): Buffer {
  const hex = numbers.map((number) => (number & (2n ** 256n - 1n)).toString(16).padStart(64, "0"));
  return Buffer.from(hex.join(""), "hex");
}

// The same number modulo that of the key, its opposite, and the numbers whose power is known.
function aroundModulus(signature: Buffer, random: Random, key: KeyObject): Buffer {
  if (key.asymmetricKeyType !== "rsa") return signature.subarray(1);
  const modulus = BigInt(
    `0x${Buffer.from(String(createPublicKey(key).export({ format: "jwk" }).n), "base64url").toString("hex")}`,
  );
  const value = BigInt(`0x${signature.toString("hex")}`);
  const other = random.pick([value + modulus, modulus - value, modulus, modulus - 1n, 1n, 0n]);
  const hex = other.toString(16);
  return Buffer.from(hex.padStart(Math.max(512, hex.length + (hex.length % 2)), "0"), "hex");
}

/** Builds a replacement of a signature; `input` is the signed text. */
type Forgery = (signature: Buffer, random: Random, good: GoodToken, input: string) => Buffer;

const forgeries: readonly Forgery[] = [
  () => Buffer.alloc(0),
  (_signature, random) => Buffer.from(Array.from({ length: 64 }, () => random.int(256))),
  (signature, random) => flipBits(signature, random),
  (signature, random) => signature.subarray(0, random.int(64)),
  (signature, random) => Buffer.concat([signature, Buffer.alloc(1 + random.int(66), random.int(256))]),
  (signature, random) => {
    const [r, s] = numbersOf(signature);
    const edge = random.pick([0n, 1n, ORDER, ORDER - 1n, ORDER + 1n, FIELD, 2n ** 256n - 1n]);
    return random.pick([bytesOf(edge, s), bytesOf(r, edge), bytesOf(edge, edge)]);
  },
  (signature, random) => {
    const [r, s] = numbersOf(signature);
    const by = BigInt(1 + random.int(1_000));
    return random.pick([bytesOf(r + by, s), bytesOf(r, s + by), bytesOf(ORDER - r, s), bytesOf(r ^ by, s ^ by)]);
  },
  // Where the group's order is taken away from numbers that are too large, these would do.
  (signature) => bytesOf(...numbersOf(signature).map((number) => number + ORDER)),
  (_signature, random, { key }, input) =>
    sign(random.pick(["sha384", "sha512", "sha224"]), Buffer.from(input), { key, dsaEncoding: "ieee-p1363" }),
  // Good signatures, but of something else.
  (_signature, random, { key, text }) => signatureOver(random.pick([...segmentsOf(text).slice(0, 2), text, ""]), key),
  (_signature, random, { key }, input) => signatureOver(random.pick([` ${input}`, `${input}.`, input.slice(1)]), key),
  (_signature, random, _good, input) => random.pick([strangeKeys.sameCurve, strangeKeys.rsa]).sign(input),
  // As long as the right one, so that it is not rejected for its length.
  (signature, random) => random.pick([Buffer.alloc(signature.length), Buffer.alloc(signature.length, 0xff)]),
  (signature, random) => Buffer.from(Array.from({ length: signature.length }, () => random.int(256))),
  (signature, random, { key }) => aroundModulus(signature, random, key),
  (_signature, random, _good, input) => random.pick([strangeKeys.otherCurve, strangeKeys.edwards]).sign(input),
  (_signature, _random, _good, input) => createHmac("sha512", "").update(input).digest(),
];

/** Mutations of the signature. */
export const signatureMutations: readonly MutationClass[] = [
  {
    name: "signature",
    weight: 8,
    mutate(good, random) {
      const [header, payload, signature] = segmentsOf(good.text);
      const input = `${header}.${payload}`;
      const forged = random.pick(forgeries)(Buffer.from(signature, "base64url"), random, good, input);
      return `${input}.${forged.toString("base64url")}`;
    },
  },
];
