/** A source of chance that gives the same again for the same seed. */
export interface Random {
  /** A whole number from 0 up to, not including, `end`. */
  int(end: number): number;
  /** True with the probability `p`. */
  chance(p: number): boolean;
  pick<T>(list: readonly T[]): T;
  /** A text of up to `longest` characters of `alphabet`. */
  text(alphabet: string, longest: number, shortest?: number): string;
}

/** Creates a source (mulberry32). @param seed any 32-bit number */
export function createRandom(seed: number): Random {
  let state = seed >>> 0;

  function next(): number {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }

  const int = (end: number) => Math.floor(next() * end);
  return {
    int,
    chance: (p) => next() < p,
    pick<T>(list: readonly T[]): T {
      if (list.length === 0) throw new RangeError("nothing to pick from");
      return list[int(list.length)] as T;
    },
    text(alphabet, longest, shortest = 0) {
      const characters = [...alphabet];
      const length = shortest + int(longest - shortest + 1);
      return Array.from({ length }, () => characters[int(characters.length)]).join("");
    },
  };
}
