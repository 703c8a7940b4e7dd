// Counts the reads of a store, to show that their number does not grow with the number of rows.
import type { Store } from "../../src/store/store.js";
import type { Tx } from "../../src/store/transaction.js";

/**
 * Wraps a store so that `onRead` is called for each method that a read-only transaction calls.
 *
 * @param onRead receives the name of the method with its store, such as `groups.find`
 */
export function countReads(store: Store, onRead: (name: string) => void): Store {
  const countCalls = (tx: Tx): Tx =>
    new Proxy(tx, {
      get: (of, storeName: Exclude<keyof Tx, "changedRows">) =>
        new Proxy(of[storeName], {
          get(rows, name: string) {
            onRead(`${String(storeName)}.${name}`);
            return bindMethod(rows, name);
          },
        }),
    });
  return new Proxy(store, {
    get(of, name: keyof Store) {
      if (name === "read") return (work: (tx: Tx) => unknown) => of.read((tx) => work(countCalls(tx)) as never);
      return bindMethod(of, name);
    },
  });
}

function bindMethod(of: object, name: string): unknown {
  const value = Reflect.get(of, name) as unknown;
  return typeof value === "function" ? value.bind(of) : value;
}
