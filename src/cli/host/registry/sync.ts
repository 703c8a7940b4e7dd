import type { Settings } from "../../../config/config.js";
import { syncRegistry } from "../../../registry/oci/sync.js";
import { createProgress } from "../../output/terminal.js";
import { print } from "../host.js";
import { withRegistry } from "./with-registry.js";

/** The flags of `arbor registry sync`. */
export interface SyncFlags {
  readonly allowMassRemoval?: boolean;
  readonly progress?: boolean;
}

/**
 * `arbor registry sync`: makes repos and tags equal to those of the registry. It prints its progress to standard error
 * and its counts to standard output.
 *
 * @throws ApiError FAILED_PRECONDITION without the address of a registry, or when it would remove more than half of the
 * tags; UNAVAILABLE.
 */
export async function syncCommand(
  settings: Settings,
  { allowMassRemoval = false, progress = false }: SyncFlags,
): Promise<void> {
  await withRegistry(settings, async (deps) => {
    const progressLine = createProgress(process.stderr, progress);
    const startMs = performance.now();
    let first: number | undefined;
    let done = 0;
    try {
      const { tags, added, removed, unknown } = await syncRegistry({
        ...deps,
        allowMassRemoval,
        onProgress(tagsDone, found, batch) {
          first ??= tagsDone - batch;
          done = tagsDone - first;
          progressLine.show(tagsDone, found);
        },
      });
      progressLine.clear();
      if (first) print(`resumed after ${first} tags`);
      print(`tags in the registry: ${tags}`);
      print(`repos and tags added or changed: ${added}`);
      print(`tags removed: ${removed}`);
      if (unknown > 0) print(`repos that belong to no group: ${unknown}`);
      print(`${added + removed} changed`);
    } finally {
      progressLine.clear();
    }
    const seconds = (performance.now() - startMs) / 1000;
    const peakMiB = Math.round(process.resourceUsage().maxRSS / 1024);
    print(`${Math.round(done / seconds)} tags/s in ${seconds.toFixed(1)} s, at most ${peakMiB} MiB of memory`);
  });
}
