// Confidence intervals of ratios without an assumption about their distribution.

/** An estimate and the interval that holds it in 95 of 100 cases. */
export interface Estimate {
  readonly value: number;
  readonly low: number;
  readonly high: number;
}

const RESAMPLES = 10_000;

/**
 * Estimates a statistic of some values with the percentile bootstrap. The values of a group have
 * a common cause, such as the measured process, so groups are drawn first and values
 * within them second. The draws are the same on every run.
 *
 * @param groups the measured values; none may be empty
 */
export function bootstrap(
  groups: readonly (readonly number[])[],
  statistic: (values: readonly number[]) => number,
): Estimate {
  const random = createRandom();
  const draw = <T>(from: readonly T[]): T[] => from.map(() => from[Math.floor(random() * from.length)] as T);
  const found = Array.from({ length: RESAMPLES }, () => statistic(draw(groups).flatMap(draw))).sort((a, b) => a - b);
  const at = (share: number) => found[Math.round(share * (RESAMPLES - 1))] ?? Number.NaN;
  return { value: statistic(groups.flat()), low: at(0.025), high: at(0.975) };
}

/** The geometric mean of ratios: that of 2 and 0.5 is 1. */
export function geometricMean(ratios: readonly number[]): number {
  return Math.exp(ratios.reduce((sum, ratio) => sum + Math.log(ratio), 0) / ratios.length);
}

// mulberry32; the seed is arbitrary.
function createRandom(): () => number {
  let state = 0x9e3779b9;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t = (t + Math.imul(t ^ (t >>> 7), t | 61)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}
