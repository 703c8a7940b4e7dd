import type { Settings } from "../../../config/config.js";
import { failedPrecondition } from "../../../kernel/errors.js";
import { moveRegistry } from "../../../registry/oci/move.js";
import { createProgress } from "../../output/terminal.js";
import { print } from "../host.js";
import { withRegistry } from "./with-registry.js";

/** The flags of `arbor registry move`. */
export interface MoveFlags {
  readonly deleteOld?: boolean;
  readonly skipBroken?: boolean;
  readonly progress?: boolean;
}

/**
 * `arbor registry move`: copies what verified organisations have under their uids in the registry to their names. It
 * prints its progress and images that cannot be copied to standard error, and its counts to standard output.
 *
 * @throws ApiError FAILED_PRECONDITION without the address of a registry, or when an organisation could not be moved;
 * UNAVAILABLE.
 */
export async function moveCommand(
  settings: Settings,
  { deleteOld = false, skipBroken = false, progress = false }: MoveFlags,
): Promise<void> {
  await withRegistry(settings, async (deps) => {
    const progressLine = createProgress(process.stderr, progress);
    try {
      const counts = await moveRegistry({
        ...deps,
        deleteOld,
        skipBroken,
        onBroken(image, reason) {
          progressLine.clear();
          process.stderr.write(`arbor: ${image} cannot be copied: ${reason}\n`);
        },
        onProgress: (done, found) => progressLine.show(done, found),
      });
      progressLine.clear();
      const { organisations, repos, tags, manifests, blobs, broken, deleted, kept } = counts;
      print(`organisations moved: ${organisations}`);
      print(`repos moved: ${repos}`);
      print(`tags copied: ${tags}`);
      print(`manifests copied: ${manifests}`);
      print(`blobs mounted: ${blobs}`);
      if (deleteOld) print(`manifests deleted under uids: ${deleted}`);
      if (kept > 0) print(`manifests left under uids, because they are not under the name: ${kept}`);
      if (broken > 0) print(`tags and digests that cannot be copied: ${broken}`);
      if (broken > 0 && !skipBroken) {
        throw failedPrecondition(
          "IMAGES",
          "not every organisation is moved: --skip-broken leaves broken images behind",
        );
      }
    } finally {
      progressLine.clear();
    }
  });
}
