// The commands that read or write the content of the container registry: `arbor registry sync` and `move`.
import type { Installation } from "../../../app/installation.js";
import type { Settings } from "../../../config/config.js";
import { failedPrecondition } from "../../../kernel/errors.js";
import { type Ids, randomIds } from "../../../kernel/ids.js";
import { moveRegistry } from "../../../registry/oci/move.js";
import { createRegistryClient, type RegistryClient } from "../../../registry/oci/registry-client.js";
import { createInternalTokens } from "../../../registry/oci/registry-token.js";
import { syncRegistry } from "../../../registry/oci/sync.js";
import { confirm } from "../../output/confirm.js";
import { createProgress } from "../../output/terminal.js";
import { print, readOrigin, withInstallation } from "../host.js";

/** The installation, and its registry. */
interface RegistryHost extends Pick<Installation, "store" | "clock"> {
  readonly ids: Ids;
  readonly registry: RegistryClient;
}

/**
 * Opens the installation of `settings` and its registry for `work`.
 *
 * @throws ApiError FAILED_PRECONDITION without the address of a registry
 */
async function withRegistry(settings: Settings, work: (host: RegistryHost) => Promise<void>): Promise<void> {
  const { registryUrl: url, registryService: service } = settings;
  if (url === undefined) throw failedPrecondition("REGISTRY", "--registry-url: the address of the registry is needed");
  await withInstallation(settings, "update", async (host) => {
    const { store, keys, clock } = host;
    const { issuer } = await readOrigin(host, settings);
    const token = createInternalTokens({ keys, clock, ids: randomIds, issuer, service });
    await work({ store, clock, ids: randomIds, registry: createRegistryClient({ url, token }) });
  });
}

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

/** The flags of `arbor registry move`. */
export interface MoveFlags {
  readonly deleteOld?: boolean;
  readonly skipBroken?: boolean;
  readonly progress?: boolean;
  /** Whether to delete without a confirmation. */
  readonly yes?: boolean;
}

/**
 * `arbor registry move`: copies the images of verified organisations in the registry from paths with their uids to
 * paths with their names. It prints its progress and images that cannot be copied to standard error, and its counts to
 * standard output.
 *
 * @throws ApiError FAILED_PRECONDITION without the address of a registry, or when an organisation could not be moved;
 * UNAVAILABLE.
 */
export async function moveCommand(
  settings: Settings,
  { deleteOld = false, skipBroken = false, progress = false, yes = false }: MoveFlags,
): Promise<void> {
  await withRegistry(settings, async (deps) => {
    if (deleteOld && !yes) {
      const question = `Delete the images under uids at ${settings.registryUrl}, once they are under names?`;
      await confirm(question, undefined, "nothing was moved");
    }
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
