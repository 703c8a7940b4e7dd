import { Histogram } from "../kernel/histogram.js";

/** What both databases count in the same way; see {@link StoreStats} in port. */
export interface StoreCounts {
  readonly batchUnits: Histogram;
  readonly commitSeconds: Histogram;
  conflicts: number;
  readonly waiting: number;
}

/** The batches of the group commit have at most 64 units. */
const UNITS = [1, 2, 4, 8, 16, 32];
const SECONDS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1];

/** Creates counts of nothing. */
export function createStoreCounts(): StoreCounts {
  return { batchUnits: new Histogram(UNITS), commitSeconds: new Histogram(SECONDS), conflicts: 0, waiting: 0 };
}
