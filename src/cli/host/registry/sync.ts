import type { Settings } from "../../../config/config.js";
import { failedPrecondition } from "../../../kernel/errors.js";
import { randomIds } from "../../../kernel/ids.js";
import { createRegistryClient } from "../../../registry/oci/registry-client.js";
import { createInternalTokens } from "../../../registry/oci/registry-token.js";
import { syncRegistry } from "../../../registry/oci/sync.js";
import { createProgress } from "../../output/terminal.js";
import { onHost, print, readOrigin } from "../host.js";

/**
 * `arbor registry sync`: makes repos and tags equal to those of the registry. It prints its progress to standard error
 * and its counts to standard output.
 *
 * @throws ApiError FAILED_PRECONDITION without the address of a registry; UNAVAILABLE.
 */
export async function syncCommand(settings: Settings, { progress = false }: { progress?: boolean }): Promise<void> {
  const { registryUrl: url, registryService: service } = settings;
  if (url === undefined) throw failedPrecondition("REGISTRY", "--registry-url: the address of the registry is needed");
  await onHost(settings, async (host) => {
    const { store, keys, clock } = host;
    const { issuer } = await readOrigin(host, settings);
    const token = createInternalTokens({ keys, clock, ids: randomIds, issuer, service });
    const progressLine = createProgress(process.stderr, progress);
    const startMs = performance.now();
    let first: number | undefined;
    let done = 0;
    try {
      const { tags, added, removed, unknown } = await syncRegistry({
        store,
        registry: createRegistryClient({ url, token }),
        clock,
        ids: randomIds,
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
    } finally {
      progressLine.clear();
    }
    const seconds = (performance.now() - startMs) / 1000;
    const peakMiB = Math.round(process.resourceUsage().maxRSS / 1024);
    print(`${Math.round(done / seconds)} tags/s in ${seconds.toFixed(1)} s, at most ${peakMiB} MiB of memory`);
  });
}
