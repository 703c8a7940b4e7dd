// The job that indexes the advisories that changed, so that filters find them without examining all others.
import type { Job } from "../../jobs/jobs.js";
import type { Store } from "../../store/port.js";

/** The interval between looks at what changed, in milliseconds. */
const INTERVAL_MS = 1_000;
/** How many changes one transaction indexes: on SQLite it blocks the main thread, and every write of other processes. */
const BATCH = 32;

/** Creates the job. What it has not indexed yet is examined one by one by lists, which are exact at any time. */
export function createAdvisoryIndexing({ read }: Pick<Store, "read">): Job {
  const hasWork = async () => read(async (tx) => tx.advisories.hasChanges());
  return {
    name: "advisory-index",
    problem: "advisories could not be indexed",
    intervalMs: INTERVAL_MS,
    hasWork,
    async run({ write, signal }) {
      let indexed = 0;
      while (!signal.aborted && (await hasWork())) {
        indexed += await write(async (tx) => tx.advisories.indexChanges(BATCH));
      }
      return indexed;
    },
  };
}
