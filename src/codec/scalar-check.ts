// Checks the scalars of a response before they are written. Types do not exclude NaN, integers out of range and lone
// surrogates, which would be written as other values.
import { INT64_RANGE, UINT64_RANGE } from "./value-rules.js";

const MAX_FLOAT = 3.4028234663852886e38;

/** Throws the error of a value that cannot be written. */
export function rejectValue(value: unknown, what: string): never {
  const shown = typeof value === "object" || typeof value === "function" ? typeof value : String(value).slice(0, 40);
  throw new RangeError(`${shown} is no ${what}`);
}

/** Checks a signed integer of 32 bits. */
export function checkInt32(value: unknown): number {
  return typeof value === "number" && (value | 0) === value ? value : rejectValue(value, "integer of 32 bits");
}

/** Checks an unsigned integer of 32 bits. */
export function checkUint32(value: unknown): number {
  return typeof value === "number" && value >>> 0 === value ? value : rejectValue(value, "natural of 32 bits");
}

const DIGITS = /^-?[0-9]{1,20}$/;

/** Checks an integer of 64 bits, which may be a string or a number. */
export function checkLong(value: unknown, isSigned: boolean): bigint {
  let long: bigint;
  if (typeof value === "bigint") long = value;
  else if (typeof value === "number" ? Number.isInteger(value) : typeof value === "string" && DIGITS.test(value))
    long = BigInt(value as number | string);
  else return rejectValue(value, "integer of 64 bits");
  const [least, greatest] = isSigned ? INT64_RANGE : UINT64_RANGE;
  return long >= least && long <= greatest ? long : rejectValue(value, "integer of 64 bits in range");
}

/** Checks a float or double. */
export function checkDouble(value: unknown): number {
  return typeof value === "number" ? value : rejectValue(value, "number");
}

/** Checks a float. A number that is rounded to infinity is out of range; infinity itself is not. */
export function checkFloat(value: unknown): number {
  const float = checkDouble(value);
  const isTooLarge = (float > MAX_FLOAT || float < -MAX_FLOAT) && Number.isFinite(float);
  return isTooLarge && !Number.isFinite(Math.fround(float)) ? rejectValue(value, "number of 32 bits") : float;
}

export function checkBoolean(value: unknown): boolean {
  return typeof value === "boolean" ? value : rejectValue(value, "boolean");
}

/** Checks that UTF-8 can represent a text. Shorter texts are checked while they are written. */
export function checkText(value: string): string {
  return value.isWellFormed() ? value : rejectValue("half a surrogate pair", "character");
}

export function checkBytes(value: unknown): Uint8Array {
  return value instanceof Uint8Array ? value : rejectValue(value, "Uint8Array");
}

export function checkList(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : rejectValue(value, "array");
}
