// What the commands that read or write the container registry have in common.
import type { Installation } from "../../../app/installation.js";
import type { Settings } from "../../../config/config.js";
import { failedPrecondition } from "../../../kernel/errors.js";
import { type Ids, randomIds } from "../../../kernel/ids.js";
import { createRegistryClient, type RegistryClient } from "../../../registry/oci/registry-client.js";
import { createInternalTokens } from "../../../registry/oci/registry-token.js";
import { onHost, readOrigin } from "../host.js";

/** The installation, and its registry. */
export interface RegistryHost extends Pick<Installation, "store" | "clock"> {
  readonly ids: Ids;
  readonly registry: RegistryClient;
}

/**
 * Opens the installation of `settings` and its registry for `work`.
 *
 * @throws ApiError FAILED_PRECONDITION without the address of a registry
 */
export async function withRegistry(settings: Settings, work: (host: RegistryHost) => Promise<void>): Promise<void> {
  const { registryUrl: url, registryService: service } = settings;
  if (url === undefined) throw failedPrecondition("REGISTRY", "--registry-url: the address of the registry is needed");
  await onHost(settings, "update", async (host) => {
    const { store, keys, clock } = host;
    const { issuer } = await readOrigin(host, settings);
    const token = createInternalTokens({ keys, clock, ids: randomIds, issuer, service });
    await work({ store, clock, ids: randomIds, registry: createRegistryClient({ url, token }) });
  });
}
