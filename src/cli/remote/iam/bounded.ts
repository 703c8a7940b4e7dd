// Runs calls with a bounded number of them in flight.

/** How many calls of a command are in flight. */
const IN_FLIGHT = 8;

/**
 * Runs `work` for each item, and returns the results in the order of the items. After the first error no more begin, and
 * those in flight end before it is thrown.
 */
export async function runBounded<T, R>(items: readonly T[], work: (item: T) => Promise<R>): Promise<R[]> {
  const results: R[] = [];
  const errors: unknown[] = [];
  let next = 0;
  const runSome = async () => {
    while (next < items.length && errors.length === 0) {
      const i = next++;
      try {
        results[i] = await work(items[i] as T);
      } catch (error) {
        errors.push(error);
      }
    }
  };
  await Promise.all(Array.from({ length: Math.min(IN_FLIGHT, items.length) }, runSome));
  if (errors.length > 0) throw errors[0];
  return results;
}
