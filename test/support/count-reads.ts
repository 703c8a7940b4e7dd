// Counts the reads of a store, to show that their number does not grow with the number of rows.
import type { kinds } from "../../src/store/kinds.js";
import type { Store } from "../../src/store/store.js";
import type { Tx } from "../../src/store/transaction.js";

/**
 * Wraps a store so that `onRead` is called for each method that a read-only transaction calls.
 *
 * @param onRead receives the name of the method with its part of the transaction, such as `groups.find` or `audit.list`
 */
export function countReads(store: Store, onRead: (name: string) => void): Store {
  const countOf = <Part extends object>(partName: string, part: Part): Part =>
    new Proxy(part, {
      get(of, name: string) {
        onRead(`${partName}.${name}`);
        return bindMethod(of, name);
      },
    });
  const countCalls = (tx: Tx): Tx =>
    new Proxy(tx, {
      get(of, name: Exclude<keyof Tx, "changedRows">) {
        if (name !== "table") return countOf(name, of[name]);
        return (kind: (typeof kinds)[number]) => countOf(kind.key, of.table(kind));
      },
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
