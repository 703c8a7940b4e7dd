// A worker of `arbor serve --workers`, which its parent starts.
import { runWorker as run } from "../../app/workers/worker.js";
import { reportError } from "../errors.js";

/** Serves until the parent ends it. @returns the exit code, if the start has failed; 0 while it runs */
export async function runWorker(): Promise<number> {
  try {
    await run();
    return 0;
  } catch (error) {
    return reportError(error);
  }
}
