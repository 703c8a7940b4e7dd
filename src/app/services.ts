// Every service of the platform but the issuer's own, in every version.
import { eventServices } from "../events/services.js";
import { iamServices } from "../iam/services.js";
import type { ServedService } from "../pipeline/method-table.js";
import { registryServices } from "../registry/services.js";
import { vulnerabilityServices } from "../vulnerabilities/services.js";
import { stableServices } from "./stable-services.js";

/** What the services need. */
export type PlatformDeps = Parameters<typeof iamServices>[0] &
  Parameters<typeof registryServices>[0] &
  Parameters<typeof vulnerabilityServices>[0] &
  Parameters<typeof eventServices>[0];

/** The services, ready to be served. */
export function platformServices(deps: PlatformDeps): ServedService[] {
  const services = [
    ...iamServices(deps),
    ...registryServices(deps),
    ...vulnerabilityServices(deps),
    ...eventServices(deps),
  ];
  return [...services, ...stableServices(services)];
}
