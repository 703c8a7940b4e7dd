// A set of capabilities as 64 hex digits, one bit per capability at the `bit`
// its proto option gives. The digit that holds bit b is the (b >> 2)th, so a
// test is one character lookup and a stored set keeps bits that only a newer
// version knows.

/** A set of capability bits: 64 hex digits, lowest bits first. */
export type CapabilitySet = string;

const DIGITS = 64;

/** The set that holds exactly `bits`. */
export function capabilitySetOf(bits: Iterable<number>): CapabilitySet {
  const digits = new Array<number>(DIGITS).fill(0);
  for (const bit of bits) {
    const at = bit >> 2;
    if (bit < 0 || at >= DIGITS) throw new TypeError(`capability bit ${bit} is out of range`);
    digits[at] = (digits[at] ?? 0) | (1 << (bit & 3));
  }
  return digits.map((digit) => digit.toString(16)).join("");
}

/** Whether `set` holds `bit`; anything malformed holds nothing. */
export function holdsBit(set: CapabilitySet, bit: number): boolean {
  const code = set.charCodeAt(bit >> 2);
  const digit = code >= 97 && code <= 102 ? code - 87 : code >= 48 && code <= 57 ? code - 48 : 0;
  return (digit & (1 << (bit & 3))) !== 0;
}

/** The bits that `set` holds, ascending. */
export function bitsOf(set: CapabilitySet): number[] {
  const bits: number[] = [];
  for (let bit = 0; bit < DIGITS * 4; bit++) if (holdsBit(set, bit)) bits.push(bit);
  return bits;
}

/** What any of `sets` holds. */
export function unionOf(sets: readonly CapabilitySet[]): CapabilitySet {
  const [only] = sets;
  return only !== undefined && sets.length === 1 ? only : capabilitySetOf(sets.flatMap(bitsOf));
}

/** What both sets hold. */
export function intersectionOf(set: CapabilitySet, other: CapabilitySet): CapabilitySet {
  return capabilitySetOf(bitsOf(set).filter((bit) => holdsBit(other, bit)));
}

/** Whether `set` holds everything that `part` holds. */
export function includesSet(set: CapabilitySet, part: CapabilitySet): boolean {
  return bitsOf(part).every((bit) => holdsBit(set, bit));
}
