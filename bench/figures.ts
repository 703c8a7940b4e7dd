// Figures of runs, and the goals that they have.

/** The arithmetic mean. */
export function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

/** The middle of some values; of an even number of them the mean of the two in the middle. */
export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const half = sorted.length / 2;
  return ((sorted[Math.ceil(half) - 1] ?? Number.NaN) + (sorted[Math.floor(half)] ?? Number.NaN)) / 2;
}

/** Prints whether a goal was met; if not, the exit code is 1. */
export function judge(
  what: string,
  value: number,
  goal: { readonly atLeast: number } | { readonly atMost: number },
): void {
  const met = "atLeast" in goal ? value >= goal.atLeast : value <= goal.atMost;
  const bound = "atLeast" in goal ? `>= ${goal.atLeast}` : `<= ${goal.atMost}`;
  console.log(`${met ? "met" : "MISSED"}: ${what} ${value.toFixed(3)} (goal ${bound})`);
  if (!met) process.exitCode = 1;
}
