// Sets of rows by their numbers, as the index of advisories stores them: 32 rows are the bits of one word.

/** How many rows have a bit in one word. */
const WORD_BITS = 32;
// Rows that are created together have bits in different words, so that concurrent writers change different rows of
// PostgreSQL. A block of 2,048 numbers fills 64 words in turn.
const BLOCK_WORDS = 64;

/** How many numbers fill one block of words. */
export const BLOCK_ROWS = BLOCK_WORDS * WORD_BITS;

/** The word in which a row has its bit. */
export function wordOf(number: number): number {
  return Math.floor(number / BLOCK_ROWS) * BLOCK_WORDS + (number % BLOCK_WORDS);
}

/** The bit of a row in its word, as an unsigned number. */
export function bitOf(number: number): number {
  return (1 << (Math.floor(number / BLOCK_WORDS) % WORD_BITS)) >>> 0;
}

/** A set of rows. */
export class RowSet {
  readonly #words = new Map<number, number>();

  /** The set of these rows. */
  static of(numbers: Iterable<number>): RowSet {
    const set = new RowSet();
    for (const number of numbers) set.addWord(wordOf(number), bitOf(number));
    return set;
  }

  /** Adds the rows that have a bit in `bits`. */
  addWord(word: number, bits: number): void {
    this.#words.set(word, (this.#words.get(word) ?? 0) | bits);
  }

  /** Adds the rows of another set. */
  addAll(other: RowSet): void {
    for (const [word, bits] of other.#words) this.addWord(word, bits);
  }

  /** Removes the rows that are not in another set. */
  keepOnly(other: RowSet): void {
    for (const [word, bits] of this.#words) this.#put(word, bits & (other.#words.get(word) ?? 0));
  }

  /** Removes the rows of another set. */
  removeAll(other: RowSet): void {
    for (const [word, bits] of other.#words) {
      const own = this.#words.get(word);
      if (own !== undefined) this.#put(word, own & ~bits);
    }
  }

  /** Whether a row is in the set. */
  has(number: number): boolean {
    return ((this.#words.get(wordOf(number)) ?? 0) & bitOf(number)) !== 0;
  }

  /** How many rows are in the set. */
  get size(): number {
    let size = 0;
    for (const bits of this.#words.values()) size += countBits(bits);
    return size;
  }

  /** The numbers of the rows, in no order. */
  numbers(): number[] {
    const numbers: number[] = [];
    for (const [word, bits] of this.#words) {
      const first = Math.floor(word / BLOCK_WORDS) * BLOCK_ROWS + (word % BLOCK_WORDS);
      for (let rest = bits; rest !== 0; rest &= rest - 1) {
        numbers.push(first + (31 - Math.clz32(rest & -rest)) * BLOCK_WORDS);
      }
    }
    return numbers;
  }

  /** The first number of each block in which the set has rows, in ascending order. */
  blocks(): number[] {
    const blocks = new Set<number>();
    for (const word of this.#words.keys()) blocks.add(Math.floor(word / BLOCK_WORDS) * BLOCK_ROWS);
    return [...blocks].sort((a, b) => a - b);
  }

  #put(word: number, bits: number): void {
    if (bits === 0) this.#words.delete(word);
    else this.#words.set(word, bits);
  }
}

// The number of ones in a word, by sums of pairs, of fours and of bytes.
function countBits(bits: number): number {
  const pairs = bits - ((bits >>> 1) & 0x55555555);
  const fours = (pairs & 0x33333333) + ((pairs >>> 2) & 0x33333333);
  return Math.imul((fours + (fours >>> 4)) & 0x0f0f0f0f, 0x01010101) >>> 24;
}
