// A set of capabilities as 64 hex digits, with one bit per capability at the `bit` of its proto option. Bit b is in
// digit b >> 2, so a test is one character lookup. A stored set keeps bits that only a newer version has.

/** A set of capability bits: 64 hex digits, lowest bits first. */
export type CapabilitySet = string;

const DIGITS = 64;

/** Builds the set of exactly `bits`. */
export function toCapabilitySet(bits: Iterable<number>): CapabilitySet {
  const digits = new Array<number>(DIGITS).fill(0);
  for (const bit of bits) {
    const at = bit >> 2;
    if (bit < 0 || at >= DIGITS) throw new TypeError(`capability bit ${bit} is out of range`);
    digits[at] = (digits[at] ?? 0) | (1 << (bit & 3));
  }
  return toSet(digits);
}

/** Whether `set` has `bit`; malformed sets have none. */
export function hasBit(set: CapabilitySet, bit: number): boolean {
  return (digitOf(set, bit >> 2) & (1 << (bit & 3))) !== 0;
}

function digitOf(set: CapabilitySet, at: number): number {
  const code = set.charCodeAt(at);
  return code >= 97 && code <= 102 ? code - 87 : code >= 48 && code <= 57 ? code - 48 : 0;
}

function toSet(digits: readonly number[]): CapabilitySet {
  return digits.map((digit) => digit.toString(16)).join("");
}

/** The bits of `set`, ascending. */
export function bitsOf(set: CapabilitySet): number[] {
  const bits: number[] = [];
  for (let bit = 0; bit < DIGITS * 4; bit++) if (hasBit(set, bit)) bits.push(bit);
  return bits;
}

export function unionOf(sets: readonly CapabilitySet[]): CapabilitySet {
  const [only] = sets;
  if (only !== undefined && sets.length === 1) return only;
  return toSet(Array.from({ length: DIGITS }, (_, at) => sets.reduce((digit, set) => digit | digitOf(set, at), 0)));
}

export function intersectionOf(set: CapabilitySet, other: CapabilitySet): CapabilitySet {
  return toSet(Array.from({ length: DIGITS }, (_, at) => digitOf(set, at) & digitOf(other, at)));
}

/** Whether `part` is a subset of `set`. */
export function includesSet(set: CapabilitySet, part: CapabilitySet): boolean {
  for (let at = 0; at < DIGITS; at++) if ((digitOf(part, at) & ~digitOf(set, at)) !== 0) return false;
  return true;
}
