// Counts the reads of a store, to show that it does not grow with what is stored.
import type { Store, Tx } from "../../src/store/port.js";

/**
 * The store itself, with each method that a transaction which only reads calls told to `onRead`.
 *
 * @param onRead gets the method with its part, such as `groups.get`
 */
export function countReads(store: Store, onRead: (name: string) => void): Store {
  const counted = (tx: Tx): Tx =>
    new Proxy(tx, {
      get: (of, part: keyof Tx) =>
        new Proxy(of[part], {
          get(rows, name: string) {
            onRead(`${String(part)}.${name}`);
            return bound(rows, name);
          },
        }),
    });
  return new Proxy(store, {
    get(of, name: keyof Store) {
      if (name === "read") return (work: (tx: Tx) => unknown) => of.read((tx) => work(counted(tx)) as never);
      return bound(of, name);
    },
  });
}

function bound(of: object, name: string): unknown {
  const value = Reflect.get(of, name) as unknown;
  return typeof value === "function" ? value.bind(of) : value;
}
