// Reads rows of parts of a list in its order, and sorts them where no index has that order: all rows of the parts are
// examined then, a few thousand per statement.
import { countPassed, entriesForSorting, type Part, planPart, planScan, type Reading } from "./plan.js";
import { type Found, readOnce, readSlices, sortFound, type Wanted, walk, walkSlices } from "./walk.js";

/** Reads rows of a part, as is cheaper: in the order of an index, or by sorting. */
export async function readPart(reading: Reading, part: Part, wanted: Wanted): Promise<Found[]> {
  const rows = wanted.skip + wanted.limit;
  const plan = planPart(reading, part, rows);
  if (!plan.sorts && !plan.isSparse) return walk(reading, part, plan, wanted);
  if (!plan.sorts) {
    // The rows may be at the end of the order. What was passed over until then costs no more than sorting does.
    const budget = plan.by === "sort" ? entriesForSorting(part) : Number.POSITIVE_INFINITY;
    // Twice as many entries as have the rows by chance.
    const first = part.matches === undefined ? undefined : Math.ceil(2 * countPassed(part, rows));
    const found = await walkSlices(reading, part, plan, wanted, { budget, first });
    if (found) return found;
  }
  return readSorted(reading, [part], wanted);
}

/** Reads rows of some parts in the order of the list. */
export async function readSorted(
  reading: Reading,
  parts: readonly Part[],
  { after, skip, limit, whole }: Wanted,
): Promise<Found[]> {
  const [only] = parts;
  if (only && parts.length === 1 && only.count <= reading.limits.slice) {
    const range = { descending: false };
    return readOnce(reading, only, planScan(reading, only), { range, after, skip, limit, whole });
  }
  // The rows of a page are part of the first rows of every slice.
  const first = { after, skip: 0, limit: skip + limit, whole: false };
  let kept: Found[] = [];
  const keepFirst = () => {
    kept = sortFound(kept, reading.query).slice(0, first.limit);
  };
  for (const part of parts) {
    const plan = planScan(reading, part);
    for await (const range of readSlices(reading, part, plan, { descending: false })) {
      for (const found of await readOnce(reading, part, plan, { ...first, range })) kept.push(found);
      if (kept.length > 2 * first.limit) keepFirst();
    }
    await reading.tx.pause?.();
  }
  keepFirst();
  return kept.slice(skip);
}
