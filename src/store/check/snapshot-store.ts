import type { Store } from "../port.js";
import type { Executor } from "../statement.js";
import { createStoreCounts } from "../store-counts.js";
import { Transaction } from "../transaction.js";

/** Creates a store whose units of work all read one open snapshot. */
export function createSnapshotStore(connection: Executor): Store {
  return {
    read: (unit) => unit(new Transaction(connection)),
    write() {
      throw new TypeError("the store was opened to be read");
    },
    lateCommitMs: 0,
    stats: () => createStoreCounts(),
    hasRoom: () => true,
    check: async () => "ok",
    async close() {},
  };
}
