/** Knows up to which id no more rows of the audit log can appear. */
export interface Settling {
  /** Tells that a row `id` was there at `ms`; to be told again while no newer one comes. */
  seen(id: number, ms: number): void;
  /** The highest id of which that is certain at `ms`; 0 when of none. */
  at(ms: number): number;
}

interface Mark {
  readonly id: number;
  readonly ms: number;
}

/** Marks are at least this far apart, in milliseconds, so that they stay few. */
const MARK_PAUSE_MS = 1_000;

/**
 * Ids come from a sequence, so whoever holds a lower one than any that was seen took it before then,
 * and has committed or failed once the longest commit is over. Until then a missing id may be a row
 * still to come, and is looked for again and again.
 *
 * @param lateMs how long a row may take from its id to its commit, in milliseconds
 */
export function createSettling(lateMs: number): Settling {
  let settled = 0;
  let marks: Mark[] = [];

  return {
    seen(id, ms) {
      const last = marks.at(-1) ?? { id: settled, ms: Number.NEGATIVE_INFINITY };
      if (id <= last.id) return;
      if (lateMs === 0) settled = id;
      else if (ms >= last.ms + MARK_PAUSE_MS) marks.push({ id, ms });
    },
    at(ms) {
      const over = marks.filter((mark) => mark.ms + lateMs <= ms);
      marks = marks.slice(over.length);
      settled = over.at(-1)?.id ?? settled;
      return settled;
    },
  };
}
