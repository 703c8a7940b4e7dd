const MAX_DISTANCE = 3;

/**
 * The one of `names` that a caller who wrote `name` most likely meant: the nearest by number of
 * changed letters, if it is near at all. Case and underscores do not count.
 */
export function suggestionFor(name: string, names: readonly string[]): string | undefined {
  const wanted = plain(name.slice(0, 64));
  const limit = Math.min(MAX_DISTANCE, Math.floor(wanted.length / 3));
  let best: string | undefined;
  let least = limit + 1;
  for (const candidate of names) {
    const distance = distanceOf(wanted, plain(candidate), least);
    if (distance < least) {
      least = distance;
      best = candidate;
    }
  }
  return best;
}

function plain(name: string): string {
  return name.toLowerCase().replaceAll("_", "");
}

// Levenshtein distance, two neighbours swapped counting as one change; `limit` if it is not below that.
function distanceOf(a: string, b: string, limit: number): number {
  if (Math.abs(a.length - b.length) >= limit) return limit;
  let before: number[] = [];
  let above = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const same = a[i - 1] === b[j - 1] ? 0 : 1;
      let cost = Math.min((row[j - 1] ?? 0) + 1, (above[j] ?? 0) + 1, (above[j - 1] ?? 0) + same);
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1])
        cost = Math.min(cost, (before[j - 2] ?? 0) + 1);
      row.push(cost);
    }
    before = above;
    above = row;
  }
  return above[b.length] ?? limit;
}
