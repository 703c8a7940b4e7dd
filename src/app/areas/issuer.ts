// The issuer of the service, and how the service recognises its tokens.
import { createIssuer, type IssuerOrigin } from "../../issuer/issuer.js";
import { createAuthenticate } from "../../pipeline/auth/authenticate.js";
import type { Quotas } from "../../pipeline/resource/quota.js";
import type { Tracing } from "../../telemetry/spans.js";
import type { AreaDeps } from "./area.js";
import type { StoreArea } from "./store.js";

export type IssuerArea = ReturnType<typeof createIssuerArea>;

export interface IssuerAreaDeps extends AreaDeps {
  readonly origin: IssuerOrigin;
  readonly storage: StoreArea;
  readonly quotas: Quotas;
  readonly tracing: Tracing | undefined;
}

/**
 * Creates the issuer, whose background work begins with `start`.
 *
 * @throws Error when the file of login providers or a file of keys is not valid
 */
export function createIssuerArea(deps: IssuerAreaDeps) {
  const { settings, ids, logger, counts, failureNews, onProblem, opened, origin, storage, quotas, tracing } = deps;
  const { callStore, keys, masterKey, clock } = storage;
  const issuer = createIssuer({
    ...{ settings, store: callStore, keys, masterKey, clock, ids, quotas, failureNews, origin, onProblem },
    onKeyStateChange: (change) => logger.info(change, "a key changed state"),
    onRedirectNotice: ({ message, ...named }) => logger.warn(named, message),
    startRequest: tracing?.startRequest,
  });
  opened.add(issuer.stop);
  const authenticate = createAuthenticate({ keys, policy: origin, clock, cache: counts.tokenCache });
  return { ...issuer, authenticate };
}
