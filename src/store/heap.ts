/** A collection that gives back the least of its items first. */
export interface Heap<T> {
  push(item: T): void;
  /** Takes the least item out; undefined when there is none. */
  pop(): T | undefined;
}

/**
 * Creates a binary heap.
 *
 * @param compare negative where `a` comes before `b`
 */
export function createHeap<T>(compare: (a: T, b: T) => number): Heap<T> {
  const items: T[] = [];
  const at = (i: number) => items[i] as T;
  const isBefore = (i: number, j: number) => compare(at(i), at(j)) < 0;
  const swap = (i: number, j: number) => {
    [items[i], items[j]] = [at(j), at(i)];
  };
  return {
    push(item) {
      let i = items.push(item) - 1;
      for (let above = (i - 1) >> 1; i > 0 && isBefore(i, above); above = (i - 1) >> 1) {
        swap(i, above);
        i = above;
      }
    },
    pop() {
      const last = items.pop();
      if (items.length === 0 || last === undefined) return last;
      const least = at(0);
      items[0] = last;
      for (let i = 0; ; ) {
        const left = 2 * i + 1;
        if (left >= items.length) return least;
        const child = left + 1 < items.length && isBefore(left + 1, left) ? left + 1 : left;
        if (!isBefore(child, i)) return least;
        swap(i, child);
        i = child;
      }
    },
  };
}
