// What the good client saw, and whether that is well enough.

/** One call of the good client. */
export interface Sample {
  readonly kind: string;
  /** When it began, in milliseconds since the client started. */
  readonly startMs: number;
  readonly ms: number;
  /** Why it was not answered as it should be; undefined when it was. */
  readonly failure?: string | undefined;
}

/** What the good client saw during one row. */
export interface Figures {
  readonly calls: number;
  /** Calls whose time counts: none that began or ended while the client itself was late. */
  readonly counted: number;
  /** The share of calls that were answered as they should be, 0 to 1. */
  readonly answered: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly maxMs: number;
  /** The longest that the client's own event loop was late. */
  readonly lagMs: number;
  /** Slices of {@link SLICE_MS} in which it was late, and of all. */
  readonly lateSlices: number;
  readonly slices: number;
  /** Why calls failed, and how many; the first few kinds. */
  readonly failures: Readonly<Record<string, number>>;
  /** The 99th percentile by kind of call, in milliseconds. */
  readonly p99ByKind: Readonly<Record<string, number>>;
}

/**
 * Whether times are judged: they mean little where others use the machine. Where they are not, a service that got no
 * processor for a while may reject calls as overloaded, and honest callers make them again.
 */
export const JUDGES_TIMES = process.env.HOSTILE_TIMES !== "reported";

/** The length of a slice of time whose calls count together, in milliseconds. */
export const SLICE_MS = 250;
/** A slice in which the client's own event loop was later than this does not count, in milliseconds. */
export const MAX_LAG_MS = 20;

const MAX_FAILURE_KINDS = 8;

/**
 * Sums up. Failures always count; times do not where the client itself was late.
 *
 * @param lagBySlice the longest lag in each slice, by its number since the client started
 */
export function figuresOf(samples: readonly Sample[], lagBySlice: ReadonlyMap<number, number>): Figures {
  const counted = punctual(samples, lagBySlice);
  const times = counted.map(({ ms }) => ms).sort((a, b) => a - b);
  const failed = samples.filter(({ failure }) => failure !== undefined);
  const failures: Record<string, number> = {};
  for (const { kind, failure = "" } of failed) {
    const name = `${kind}: ${failure}`;
    if (name in failures || Object.keys(failures).length < MAX_FAILURE_KINDS)
      failures[name] = (failures[name] ?? 0) + 1;
  }
  const kinds = [...new Set(counted.map(({ kind }) => kind))].sort();
  const byKind = kinds.map((kind) => {
    const own = counted.filter((sample) => sample.kind === kind).map(({ ms }) => ms);
    return [
      kind,
      percentile(
        own.sort((a, b) => a - b),
        0.99,
      ),
    ] as const;
  });
  const lags = [...lagBySlice.values()];
  return {
    calls: samples.length,
    counted: counted.length,
    answered: samples.length === 0 ? 0 : 1 - failed.length / samples.length,
    p50Ms: percentile(times, 0.5),
    p99Ms: percentile(times, 0.99),
    maxMs: times.at(-1) ?? 0,
    lagMs: Math.max(0, ...lags),
    lateSlices: lags.filter((lag) => lag > MAX_LAG_MS).length,
    slices: lags.length,
    failures,
    p99ByKind: Object.fromEntries(byKind),
  };
}

/** The samples that neither began nor ended in a slice in which the client itself was late. */
export function punctual(samples: readonly Sample[], lagBySlice: ReadonlyMap<number, number>): readonly Sample[] {
  const isLate = (ms: number) => (lagBySlice.get(Math.floor(ms / SLICE_MS)) ?? 0) > MAX_LAG_MS;
  return samples.filter((sample) => !isLate(sample.startMs) && !isLate(sample.startMs + sample.ms));
}

/** The value that `share` of the sorted values do not exceed; 0 when there are none. */
export function percentile(sorted: readonly number[], share: number): number {
  return sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)] ?? 0;
}

/** What a row asks of the good client. */
export interface Demands {
  readonly calls: number;
  readonly answered: number;
  /** The 99th percentile at most, in milliseconds; undefined where times are not judged. */
  readonly p99Ms: number | undefined;
}

/** What is wrong with the figures; empty when they are as demanded. */
export function faultsIn(figures: Figures, demands: Demands): string[] {
  const faults: string[] = [];
  if (figures.calls < demands.calls) faults.push(`only ${figures.calls} calls of the good client`);
  // Where the client is late most of the time, nothing was measured.
  if (demands.p99Ms !== undefined && figures.counted < demands.calls / 2)
    faults.push(`the good client was late itself: ${figures.counted} calls count`);
  if (figures.answered < demands.answered) {
    const why = Object.entries(figures.failures).map(([name, count]) => `${count} × ${name}`);
    faults.push(`${(figures.answered * 100).toFixed(2)} % answered (${why.join("; ")})`);
  }
  if (demands.p99Ms !== undefined && figures.p99Ms > demands.p99Ms) {
    faults.push(`p99 ${figures.p99Ms.toFixed(1)} ms, above ${demands.p99Ms.toFixed(1)} ms`);
  }
  return faults;
}
