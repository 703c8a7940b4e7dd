// What writers demand of the scalars of an answer. Types do not keep a handler from NaN, from integers out of range or
// from half a surrogate pair; what would be written of those is another value, so they are errors.
import { INT64_RANGE, UINT64_RANGE } from "./value-rules.js";

const MAX_FLOAT = 3.4028234663852886e38;

/** Throws what a handler's answer cannot be written for. */
export function rejectValue(value: unknown, what: string): never {
  const shown = typeof value === "object" || typeof value === "function" ? typeof value : String(value).slice(0, 40);
  throw new RangeError(`${shown} is no ${what}`);
}

/** A signed integer of 32 bits. */
export function checkInt32(value: unknown): number {
  return typeof value === "number" && (value | 0) === value ? value : rejectValue(value, "integer of 32 bits");
}

/** An unsigned integer of 32 bits. */
export function checkUint32(value: unknown): number {
  return typeof value === "number" && value >>> 0 === value ? value : rejectValue(value, "natural of 32 bits");
}

const DIGITS = /^-?[0-9]{1,20}$/;

/** An integer of 64 bits, which may be kept as text or number. */
export function checkLong(value: unknown, isSigned: boolean): bigint {
  let long: bigint;
  if (typeof value === "bigint") long = value;
  else if (typeof value === "number" ? Number.isInteger(value) : typeof value === "string" && DIGITS.test(value))
    long = BigInt(value as number | string);
  else return rejectValue(value, "integer of 64 bits");
  const [least, greatest] = isSigned ? INT64_RANGE : UINT64_RANGE;
  return long >= least && long <= greatest ? long : rejectValue(value, "integer of 64 bits in range");
}

/** A float or double. */
export function checkDouble(value: unknown): number {
  return typeof value === "number" ? value : rejectValue(value, "number");
}

/** A float. What is rounded to infinity is out of range; infinity itself is not. */
export function checkFloat(value: unknown): number {
  const float = checkDouble(value);
  const isTooLarge = (float > MAX_FLOAT || float < -MAX_FLOAT) && Number.isFinite(float);
  return isTooLarge && !Number.isFinite(Math.fround(float)) ? rejectValue(value, "number of 32 bits") : float;
}

/** A boolean. */
export function checkBoolean(value: unknown): boolean {
  return typeof value === "boolean" ? value : rejectValue(value, "boolean");
}

/** Text that UTF-8 can represent. Shorter texts are checked while they are written. */
export function checkText(value: string): string {
  return value.isWellFormed() ? value : rejectValue("half a surrogate pair", "character");
}

/** Bytes. */
export function checkBytes(value: unknown): Uint8Array {
  return value instanceof Uint8Array ? value : rejectValue(value, "Uint8Array");
}

/** The elements of a list. */
export function checkList(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : rejectValue(value, "array");
}
