// The exchanger with everything it stands on, outside a service.
import type { Installation } from "../../../src/app/installation.js";
import { createLastSeen } from "../../../src/issuer/maintenance.js";
import { createIdTokens } from "../../../src/issuer/oauth/id-tokens.js";
import { createTickets } from "../../../src/issuer/oauth/tickets.js";
import { isOwnUrl } from "../../../src/issuer/sts/audience.js";
import { createExchanger, type Exchanger } from "../../../src/issuer/sts/exchange.js";
import { createFailureThrottle } from "../../../src/issuer/sts/failure-throttle.js";
import { createTokens } from "../../../src/issuer/tokens.js";
import { createIssuers, type Issuers } from "../../../src/issuer/upstream/issuers.js";
import { randomIds } from "../../../src/kernel/ids.js";
import { createGuardedFetch } from "../../../src/outbound/guarded-fetch.js";
import { MAX_LIFE_S } from "../upstream/foreign-issuer.js";

const NEVER = { points: Number.MAX_SAFE_INTEGER, seconds: 4 };

/** How the exchanger is set up. */
export interface ExchangerSetup {
  readonly installation: Installation;
  /** The name of the service, which issues the tokens. */
  readonly url: string;
  /** Its other names. */
  readonly names?: readonly string[];
  /** Origins of issuers on this machine. */
  readonly trustedOrigins: readonly string[];
  /** Replaces the verification of tokens with their issuers' keys. */
  readonly verify?: Issuers["verify"] | undefined;
}

/** Creates an exchanger whose failure limits are never reached. */
export function exchangerOf({ installation, url, names = [], trustedOrigins, verify }: ExchangerSetup): Exchanger {
  const { store, keys, masterKey, clock } = installation;
  const ownUrls = [url, ...names];
  const fetch = createGuardedFetch({ trustedOrigins });
  const issuers = createIssuers({
    fetch,
    clock,
    isOwnIssuer: (issuer) => isOwnUrl(issuer, ownUrls),
    maxTokenLifeS: MAX_LIFE_S,
  });
  return createExchanger({
    store,
    issuers: verify === undefined ? issuers : { ...issuers, verify },
    fetch,
    loginProviders: [],
    stsOrigins: [],
    ownUrls,
    audiences: [url],
    maxTokenLifeS: MAX_LIFE_S,
    idTokens: createIdTokens({ store, tickets: createTickets(masterKey), keys, issuer: url }),
    tokens: createTokens({ keys, ids: randomIds, issuer: url }),
    lastSeen: createLastSeen(store),
    limiter: createFailureThrottle({ perName: NEVER, perAddress: NEVER }),
    clock,
  });
}
