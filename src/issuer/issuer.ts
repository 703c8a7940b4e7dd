// The issuer put together: who gets a token, for what proof, and by which door.
import type { Clock } from "../kernel/clock.js";
import type { Ids } from "../kernel/ids.js";
import type { WebRoutes } from "../kernel/web.js";
import { createGuardedFetch } from "../outbound/guarded-fetch.js";
import type { ServedService } from "../pipeline/method-table.js";
import type { Quotas } from "../pipeline/quotas.js";
import type { Store } from "../store/port.js";
import { authV1 } from "./auth-v1.js";
import type { KeyRing } from "./keys/key-ring.js";
import { createKeyRotator } from "./keys/key-rotator.js";
import { keyScheduleOf } from "./keys/key-states.js";
import type { MasterKey } from "./keys/master-key.js";
import { createLastSeen, createMaintenance, type LastSeen } from "./maintenance.js";
import { readLoginProviders } from "./oauth/login-providers.js";
import { findRedirectNotices, type RedirectNotice } from "./oauth/redirect-notice.js";
import { loginRoutes } from "./oauth/routes.js";
import { isOurName } from "./sts/audience.js";
import { defaultStsOrigins } from "./sts/aws.js";
import { createExchanger, type Exchanger } from "./sts/exchange.js";
import { createFailureLimiter, INVITE_FAILURES } from "./sts/failure-limiter.js";
import { createFailureThrottle } from "./sts/failure-throttle.js";
import { securityTokenService } from "./sts/sts.js";
import { createTokens } from "./tokens.js";
import { createIssuers } from "./upstream/issuers.js";
import { wellKnownRoutes } from "./well-known.js";

/**
 * Refused exchanges that pass at full speed. One name alone, slowed down to 20 a second when its share
 * is used up, never uses up that of the address.
 */
const FAILURES = { perName: { points: 100, seconds: 4 }, perAddress: { points: 200, seconds: 4 } };

/** How the issuer is set up. */
export interface IssuerSettings {
  readonly trustedIssuers: readonly string[];
  readonly loginProviders: string | undefined;
  readonly registration: "invite" | "open";
  readonly awsStsOrigins: readonly string[] | undefined;
  /** Seconds. */
  readonly keyRotation: number;
  /** Seconds. */
  readonly jwksMaxAge: number;
}

/** How the service is called. */
export interface IssuerOrigin {
  readonly baseUrl: string;
  readonly issuer: string;
  readonly audiences: readonly string[];
}

/** What the issuer needs. */
export interface IssuerDeps {
  readonly settings: IssuerSettings;
  readonly store: Store;
  readonly keys: KeyRing;
  readonly masterKey: MasterKey;
  readonly clock: Clock;
  readonly ids: Ids;
  /** Asked each time: with port 0 the address is known only once it listens. */
  readonly origin: () => IssuerOrigin;
  /** The quotas of the organisations that people join, and of what they are told of those. */
  readonly quotas: Quotas;
  /** For the operator's log: what went wrong, and which keys moved on. */
  readonly onNews: (news: object) => void;
  readonly onProblem: (problem: string, error?: unknown) => void;
  /** For the operator's log at start. */
  readonly onRedirectNotice: (notice: RedirectNotice) => void;
}

/** The issuer. */
export interface Issuer {
  readonly services: readonly ServedService[];
  readonly routes: WebRoutes;
  /** For what else takes tokens of other issuers. */
  readonly exchanger: Exchanger;
  readonly lastSeen: LastSeen;
  /** Begins what it does in the background. */
  start(): void;
  /** Ends that. */
  stop(): Promise<void>;
}

/**
 * Creates the issuer.
 *
 * @throws Error when the file of the login providers cannot be used.
 */
export function createIssuer(deps: IssuerDeps): Issuer {
  const { settings, store, keys, masterKey, clock, ids, origin, quotas, onNews, onProblem, onRedirectNotice } = deps;
  const ownUrls = () => {
    const { issuer, audiences } = origin();
    return [issuer, ...audiences];
  };
  const audiences = () => origin().audiences;
  const loginProviders = readLoginProviders(settings.loginProviders);
  const fetch = createGuardedFetch({
    trustedOrigins: settings.trustedIssuers,
    operatorIssuers: loginProviders.map(({ issuer }) => issuer),
    onRefused: (reason) => onProblem(`a request to another issuer was not made: ${reason}`),
  });
  const issuers = createIssuers({
    fetch,
    clock,
    isOurs: (issuer) => isOurName(issuer, ownUrls()),
    onProblem: (issuer, reason) => onProblem(`the keys of ${issuer} could not be had: ${reason}`),
  });
  const tokens = createTokens({ keys, ids, issuer: () => origin().issuer });
  const lastSeen = createLastSeen(store);
  const limiter = createFailureThrottle(FAILURES);
  const guesses = createFailureLimiter(INVITE_FAILURES);
  const stsOrigins = settings.awsStsOrigins ?? defaultStsOrigins;
  const identifying = { store, issuers, fetch, loginProviders, stsOrigins, ownUrls };
  const exchanger = createExchanger({ ...identifying, tokens, lastSeen, limiter, clock, audiences });
  const maintenance = createMaintenance({ store, lastSeen, clock, onProblem });
  const keeper = createKeyRotator({
    keys,
    schedule: keyScheduleOf(settings),
    onMove: (move) => onNews({ key: move.kid, state: move.state }),
    onProblem,
  });
  let noticed: Promise<void> | undefined;
  return {
    services: [
      securityTokenService({ exchanger, tokens, limiter, audiences, lastSeen }),
      authV1({ exchanger, ids, store, quotas, open: settings.registration === "open", guesses }),
    ],
    routes: [
      ...wellKnownRoutes({ keys, issuer: () => origin().issuer, maxAgeS: settings.jwksMaxAge }),
      ...loginRoutes({
        store,
        tokens,
        exchanger,
        masterKey,
        fetch,
        clock,
        ids,
        origin,
        loginProviders,
        registration: settings.registration,
        secure: origin().baseUrl.startsWith("https:"),
        guesses,
        quotas,
        onProblem,
      }),
    ],
    exchanger,
    lastSeen,
    start() {
      keeper.start();
      maintenance.start();
      noticed = findRedirectNotices({ store, clock, issuer: origin().issuer, loginProviders }).then(
        (notices) => {
          for (const notice of notices) onRedirectNotice(notice);
        },
        (error) => onProblem("it could not be found out which redirect URIs are new", error),
      );
    },
    async stop() {
      await noticed;
      await keeper.stop();
      await maintenance.stop();
    },
  };
}
