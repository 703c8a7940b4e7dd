// The job that counts the entries of long lists, so that a long `skip` costs no more than a short one.
import type { Job } from "../jobs/jobs.js";
import type { Store } from "../store/port.js";
import { completeRanks } from "../store/rank-store.js";
import { isOlder, OLDEST_VERSION } from "../store/version.js";

const INTERVAL_MS = 600_000;
/** Versions before this one add and remove entries without counting them. */
const FIRST_VERSION = "0.5.0";

/** Creates the job. It waits until the database admits no version that does not count. */
export function createListRanking({ read }: Pick<Store, "read">): Job {
  return {
    name: "list-ranks",
    problem: "the entries of long lists could not be counted",
    intervalMs: INTERVAL_MS,
    async run({ write, signal }) {
      const oldest = await read((tx) => tx.settings.get(OLDEST_VERSION));
      if (oldest === undefined || isOlder(oldest, FIRST_VERSION)) return 0;
      return completeRanks({ read, write }, () => signal.aborted);
    },
  };
}
