// Loaded before a service and its commands, so that those of two checkouts make the same ids in the same order, each
// greater than the one before: lists are in the order of uids. Times get three digits of milliseconds from 300 on, so
// that they have one length in every format. COMPARE_PROCESS is a number that differs for each process of a side.
import crypto from "node:crypto";
import { syncBuiltinESMExports } from "node:module";

const processNumber = Number(process.env.COMPARE_PROCESS ?? 0);
const drawn = new Map();

/** The sizes of the random bytes in uids. */
const UID_BYTES = new Set([8, 20]);

function steadyBytes(size) {
  const number = drawn.get(size) ?? 0;
  drawn.set(size, number + 1);
  const bytes = Buffer.alloc(size);
  for (let at = 0; at < size; at += 32) {
    crypto.createHash("sha256").update(`${processNumber} ${size} ${number} ${at}`).digest().copy(bytes, at);
  }
  if (UID_BYTES.has(size)) {
    bytes[0] = processNumber;
    bytes.writeUInt32BE(number, 1);
  }
  return bytes;
}

crypto.randomBytes = (size, callback) => {
  const bytes = steadyBytes(size);
  if (callback === undefined) return bytes;
  setImmediate(callback, null, bytes);
};
crypto.randomInt = (end) => steadyBytes(6).readUIntBE(0, 6) % end;
syncBuiltinESMExports();

const skewMs = Number(process.env.COMPARE_SKEW_MS ?? 0);
const { now } = Date;
Date.now = () => {
  const ms = now() + skewMs;
  const within = ms % 1000;
  return ms - within + 300 + Math.floor(within * 0.7);
};
