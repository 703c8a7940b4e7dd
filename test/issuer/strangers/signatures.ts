// Signatures that must not verify, made from a right one of ES256 and the text that it signs.
import { sign } from "node:crypto";
import { strangeKeys } from "./strange-keys.js";
import { derOf, ORDER, signatureOf } from "./token-kit.js";

const zeros = (count: number) => Buffer.alloc(count);
const [r, s] = [(right: Buffer) => right.subarray(0, 32), (right: Buffer) => right.subarray(32)];

/** By what differs. */
export const strangeSignatures: Readonly<Record<string, (right: Buffer, input: string) => Buffer>> = {
  "64 zero bytes": () => zeros(64),
  "r is zero": (right) => Buffer.concat([zeros(32), s(right)]),
  "s is zero": (right) => Buffer.concat([r(right), zeros(32)]),
  "r and s are one": () => signatureOf(1n, 1n),
  "r and s are the order of the group": () => signatureOf(ORDER, ORDER),
  "r and s are beyond the order of the group": () => signatureOf(ORDER + 1n, ORDER + 1n),
  "r and s are as large as can be": () => Buffer.alloc(64, 0xff),
  "r and s swapped": (right) => Buffer.concat([s(right), r(right)]),
  "the bytes in reverse": (right) => Buffer.from(right).reverse(),
  DER: derOf,
  "one byte": () => zeros(1),
  "63 bytes": (right) => right.subarray(0, 63),
  "65 bytes": (right) => Buffer.concat([right, zeros(1)]),
  "a zero before each number": (right) => Buffer.concat([zeros(1), r(right), zeros(1), s(right)]),
  "128 bytes": (right) => Buffer.concat([right, right]),
  "the signature of another algorithm": (_right, input) => strangeKeys.otherCurve.sign(input),
  "another hash": (_right, input) =>
    sign("sha512", Buffer.from(input), { key: strangeKeys.sameCurve.key, dsaEncoding: "ieee-p1363" }),
};
