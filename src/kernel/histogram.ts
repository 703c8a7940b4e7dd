// Counts values by upper bounds. To observe a value allocates nothing.

/** A cumulative histogram as Prometheus defines it, with its counts in a preallocated array. */
export class Histogram {
  /** The upper bounds of the buckets, ascending, without infinity. */
  readonly bounds: readonly number[];
  /** How many values each bucket has, without those of the buckets before it; the last one has no upper bound. */
  readonly counts: Float64Array;
  #sum = 0;

  constructor(bounds: readonly number[]) {
    this.bounds = bounds;
    this.counts = new Float64Array(bounds.length + 1);
  }

  get sum(): number {
    return this.#sum;
  }

  observe(value: number): void {
    const { bounds, counts } = this;
    let bucket = 0;
    while (bucket < bounds.length && value > (bounds[bucket] as number)) bucket++;
    counts[bucket] = (counts[bucket] as number) + 1;
    this.#sum += value;
  }
}
