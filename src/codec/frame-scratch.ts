// The buffer in which frames are written, from its end to its beginning: the
// length of what is nested is known when it is due, and nothing is measured
// first. There is one for all, since a frame is written without a break.

import { checkText } from "./scalar-check.js";

/** The prefix of a message: a flag and its length (gRPC over HTTP/2, "Length-Prefixed-Message"), in bytes. */
export const PREFIX_BYTES = 5;

const SMALL_BYTES = 64 * 1024;
/** A buffer that a rare answer made larger than this is given back. */
const KEPT_BYTES = 1024 * 1024;
/** Longer texts are handed to Node; a call into it costs as much as this many characters do here. */
const SHORT = 160;

let scratch = Buffer.allocUnsafeSlow(SMALL_BYTES);
// What is written begins here.
let at = scratch.length;

/** Forgets what was written. */
export function beginFrame(): void {
  if (scratch.length > KEPT_BYTES) scratch = Buffer.allocUnsafeSlow(SMALL_BYTES);
  at = scratch.length;
}

/** How many bytes are written. */
export function bytesWritten(): number {
  return scratch.length - at;
}

/** The bytes written so far, after the prefix of a message that is not compressed. */
export function takeFrame(): Buffer {
  const size = bytesWritten();
  const frame = Buffer.allocUnsafe(PREFIX_BYTES + size);
  frame[0] = 0;
  frame.writeUInt32BE(size, 1);
  scratch.copy(frame, PREFIX_BYTES, at);
  return frame;
}

function reserve(size: number): void {
  if (at >= size) return;
  const grown = Buffer.allocUnsafeSlow(2 * scratch.length + size);
  const start = grown.length - bytesWritten();
  scratch.copy(grown, start, at);
  at = start;
  scratch = grown;
}

/** Writes a varint of at most 32 bits, without sign. */
export function writeVarint(value: number): void {
  reserve(5);
  at -= value < 0x80 ? 1 : value < 0x4000 ? 2 : value < 0x200000 ? 3 : value < 0x10000000 ? 4 : 5;
  let to = at;
  let rest = value;
  while (rest >= 0x80) {
    scratch[to++] = (rest & 0x7f) | 0x80;
    rest >>>= 7;
  }
  scratch[to] = rest;
}

/** Writes a varint of 64 bits; a negative one as its two's complement. */
export function writeLongVarint(value: bigint): void {
  reserve(10);
  let rest = BigInt.asUintN(64, value);
  const groups: number[] = [];
  for (; rest > 0x7fn; rest >>= 7n) groups.push(Number(rest & 0x7fn) | 0x80);
  scratch[--at] = Number(rest);
  for (let i = groups.length - 1; i >= 0; i--) scratch[--at] = groups[i] ?? 0;
}

/** Writes 32 bits. */
export function writeFixed32(value: number): void {
  reserve(4);
  at -= 4;
  scratch.writeUInt32LE(value >>> 0, at);
}

/** Writes 64 bits. */
export function writeFixed64(value: bigint): void {
  reserve(8);
  at -= 8;
  scratch.writeBigUInt64LE(BigInt.asUintN(64, value), at);
}

/** Writes a number of 32 bits with a fraction. */
export function writeFloat(value: number): void {
  reserve(4);
  at -= 4;
  scratch.writeFloatLE(value, at);
}

/** Writes a number of 64 bits with a fraction. */
export function writeDouble(value: number): void {
  reserve(8);
  at -= 8;
  scratch.writeDoubleLE(value, at);
}

/** Writes bytes as they are. */
export function writeRaw(value: Uint8Array): void {
  reserve(value.length);
  at -= value.length;
  scratch.set(value, at);
}

/**
 * Writes a text in UTF-8.
 *
 * @throws RangeError for half a surrogate pair, which UTF-8 does not have.
 */
export function writeText(value: string): void {
  if (value.length <= SHORT && shortAscii(value)) return;
  checkText(value);
  const size = Buffer.byteLength(value);
  reserve(size);
  at -= size;
  scratch.write(value, at, size, "utf8");
}

function shortAscii(value: string): boolean {
  const { length } = value;
  reserve(length);
  const start = at - length;
  for (let i = 0; i < length; i++) {
    const code = value.charCodeAt(i);
    if (code > 0x7f) return false;
    scratch[start + i] = code;
  }
  at = start;
  return true;
}
