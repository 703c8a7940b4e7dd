// What calls in flight are about to create. They count what exists before their transactions, and the transactions of
// others may commit in between.

/** What one call is about to create, from its first count until its transaction has ended. */
export class Reservation {
  /** Whether the transaction that creates must count again, because a limit is near. */
  mustRecount = false;
  #release: (() => void)[] = [];

  /** Adds what `release` undoes. */
  add(release: () => void): void {
    this.#release.push(release);
  }

  /** Withdraws all of it. */
  release(): void {
    for (const release of this.#release.splice(0)) release();
  }
}

/** Counts what the calls of this process are about to create. */
export function createReservedCounts() {
  const counts = new Map<string, number>();
  const change = (key: string, by: number) => {
    const count = (counts.get(key) ?? 0) + by;
    if (count > 0) counts.set(key, count);
    else counts.delete(key);
  };
  return {
    /** Reserves `count` things; returns how many others had reserved before. */
    reserve(key: string, count: number, reservation: Reservation): number {
      const before = counts.get(key) ?? 0;
      change(key, count);
      reservation.add(() => change(key, -count));
      return before;
    },
  };
}
