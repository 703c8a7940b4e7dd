// The buffer in which frames are written, from its end to its beginning, so that the length of a nested message is
// known when it is written. One buffer serves all, because a frame is written synchronously.

import { checkText } from "./scalar-check.js";

/** The prefix of a message: a flag and its length (gRPC over HTTP/2, "Length-Prefixed-Message"), in bytes. */
export const PREFIX_BYTES = 5;

const SMALL_BYTES = 64 * 1024;
/** A buffer that grew larger than this is released after its frame. */
const KEPT_BYTES = 1024 * 1024;
/** Longer texts are written by Node, because a call into it takes as long as this many characters here. */
const SHORT = 160;

let scratch = Buffer.allocUnsafeSlow(SMALL_BYTES);
// The start of the bytes that are written.
let at = scratch.length;

/** Starts a new frame. */
export function beginFrame(): void {
  if (scratch.length > KEPT_BYTES) scratch = Buffer.allocUnsafeSlow(SMALL_BYTES);
  at = scratch.length;
}

export function countWrittenBytes(): number {
  return scratch.length - at;
}

/** Returns the written bytes with the prefix of an uncompressed message. */
export function takeFrame(): Buffer {
  const size = countWrittenBytes();
  const frame = Buffer.allocUnsafe(PREFIX_BYTES + size);
  frame[0] = 0;
  frame.writeUInt32BE(size, 1);
  scratch.copy(frame, PREFIX_BYTES, at);
  return frame;
}

/** Returns the written bytes. */
export function takeMessage(): Buffer {
  return Buffer.from(scratch.subarray(at));
}

function reserve(size: number): void {
  if (at >= size) return;
  const grown = Buffer.allocUnsafeSlow(2 * scratch.length + size);
  const start = grown.length - countWrittenBytes();
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

export function writeFixed32(value: number): void {
  reserve(4);
  at -= 4;
  scratch.writeUInt32LE(value >>> 0, at);
}

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
 * @throws RangeError for a lone surrogate, which UTF-8 cannot represent
 */
export function writeText(value: string): void {
  if (value.length <= SHORT && tryWriteAscii(value)) return;
  checkText(value);
  const size = Buffer.byteLength(value);
  reserve(size);
  at -= size;
  scratch.write(value, at, size, "utf8");
}

function tryWriteAscii(value: string): boolean {
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
