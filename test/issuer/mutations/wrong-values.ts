// Values that are not what they were: by type, by a small edit, by a flipped bit.
import type { Random } from "../../support/openapi/random.js";

// Besides letters and digits: what URLs, paths and JSON are made of, what is not seen, and what looks
// like something else (a Cyrillic a, a full-width a, the Kelvin sign).
const CHARACTERS = [..."abcdefXYZ0189-_~./:@?#%*+ \\\"'\t\n\u0000\u007f\u00a0\u00e4\u200b\u202e\u0430\uff41\u212a"];

/** The text with one small change somewhere: a character more, less or another, or the case of one. */
export function editText(text: string, random: Random): string {
  const at = random.int(text.length + 1);
  const [before, after] = [text.slice(0, at), text.slice(at)];
  switch (random.int(6)) {
    case 0:
      return before + random.pick(CHARACTERS) + after;
    case 1:
      return before + after.slice(1);
    case 2:
      return before + random.pick(CHARACTERS) + after.slice(1);
    case 3:
      return before + switchCase(after.slice(0, 1)) + after.slice(1);
    case 4:
      return before + after.slice(0, 1) + after;
    default:
      return random.pick([
        before,
        after,
        text + text,
        text.toUpperCase(),
        ` ${text}`,
        `${text} `,
        `${text}\n`,
        `${text}\u0000`,
        `${text}/`,
        `${text},${text}`,
      ]);
  }
}

function switchCase(character: string): string {
  return character === character.toLowerCase() ? character.toUpperCase() : character.toLowerCase();
}

/** A value of another type, or none, where `value` was expected; it may hold `value`. */
export function otherType(value: unknown, random: Random): unknown {
  return random.pick<() => unknown>([
    () => undefined,
    () => null,
    () => true,
    () => false,
    () => 0,
    () => -1,
    () => random.int(2 ** 31),
    () => 1.5,
    () => 1e308,
    () => "",
    () => "x",
    () => [],
    () => ({}),
    () => [value],
    () => [[value]],
    () => [value, value],
    () => ({ value }),
    () => ({ 0: value, length: 1 }),
    () => (typeof value === "number" ? String(value) : JSON.stringify(value)),
    () => Number(value),
  ])();
}

/** The bytes with one to three bits flipped. */
export function flipBits(bytes: Uint8Array, random: Random): Buffer {
  const flipped = Buffer.from(bytes);
  if (flipped.length === 0) return flipped;
  for (let flips = 1 + random.int(3); flips > 0; flips--) {
    const at = random.int(flipped.length);
    flipped[at] = (flipped[at] ?? 0) ^ (1 << random.int(8));
  }
  return flipped;
}
