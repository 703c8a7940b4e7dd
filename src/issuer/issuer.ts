// The composition of the issuer: token exchange, browser login and signing keys.
import type { Job } from "../jobs/jobs.js";
import type { Ids } from "../kernel/ids.js";
import type { IssuerKeySource } from "../kernel/issuer-keys.js";
import { readLoginProviders } from "../kernel/login-providers.js";
import type { Clock } from "../kernel/time.js";
import type { StartRequest } from "../kernel/trace.js";
import type { WebRoutes } from "../kernel/web.js";
import { createGuardedFetch } from "../outbound/guarded-fetch.js";
import { type CacheCounts, createCacheCounts } from "../pipeline/auth/authenticate.js";
import type { ServedService } from "../pipeline/method-table.js";
import type { Quotas } from "../pipeline/resource/quota.js";
import type { Store } from "../store/store.js";
import { authV1 } from "./auth-v1.js";
import { createExchangeCounts, type ExchangeCounts } from "./exchange-counts.js";
import type { KeyRing } from "./keys/key-ring.js";
import { buildKeySchedule } from "./keys/key-states.js";
import type { MasterKey } from "./keys/master-key.js";
import {
  createExpiredRowSweep,
  createKeyReload,
  createKeyRotation,
  createLastSeen,
  createLastSeenFlush,
  type LastSeen,
} from "./maintenance.js";
import type { HeadlessConfirmation } from "./oauth/context.js";
import { createTerminalNotes } from "./oauth/headless.js";
import { createIdTokens } from "./oauth/id-tokens.js";
import { findRedirectNotices, type RedirectNotice } from "./oauth/redirect-notice.js";
import { createLoginRoutes } from "./oauth/routes.js";
import { createTickets } from "./oauth/tickets.js";
import { createSigner } from "./signer.js";
import { isOwnUrl } from "./sts/audience.js";
import { defaultStsOrigins } from "./sts/aws.js";
import { patternCache } from "./sts/claim-pattern.js";
import { createExchanger, type Exchanger } from "./sts/exchange.js";
import { createFailureLimiter, type FailureNews, INVITE_FAILURE_LIMIT } from "./sts/failure-limiter.js";
import { createFailureThrottle } from "./sts/failure-throttle.js";
import { createSecurityTokenService } from "./sts/sts.js";
import { createTestClaims } from "./sts/test-claims.js";
import { createTokens } from "./tokens.js";
import { createIssuers } from "./upstream/issuers.js";
import { type OperatorKeys, readOperatorKeys } from "./upstream/operator-keys.js";
import { createWellKnownRoutes } from "./well-known.js";

/**
 * How many exchanges may be rejected before the caller is slowed down to 20 per second. One name cannot use up the
 * limit of its address.
 */
const FAILURE_LIMITS = { perName: { points: 100, seconds: 4 }, perAddress: { points: 200, seconds: 4 } };

export interface IssuerSettings {
  readonly trustedIssuers: readonly string[];
  readonly issuerKeys: readonly IssuerKeySource[];
  readonly outboundProxy: string | undefined;
  /** Seconds. */
  readonly exchangeTokenLife: number;
  readonly loginProviders: string | undefined;
  readonly registration: "invite" | "open";
  readonly headlessConfirmation: HeadlessConfirmation;
  /** Whether the web console is served. */
  readonly console: boolean;
  readonly awsStsOrigins: readonly string[] | undefined;
  /** Seconds. */
  readonly keyRotation: number;
  /** Seconds. */
  readonly jwksMaxAge: number;
}

/** The URLs of the service. */
export interface IssuerOrigin {
  readonly baseUrl: string;
  readonly issuer: string;
  readonly urls: readonly string[];
  readonly audiences: readonly string[];
}

export interface IssuerDeps {
  readonly settings: IssuerSettings;
  readonly store: Store;
  readonly keys: KeyRing;
  readonly masterKey: MasterKey;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly origin: IssuerOrigin;
  /** The quotas of the organisations that people join. */
  readonly quotas: Quotas;
  /** Shares failed attempts with other workers. */
  readonly failureNews: FailureNews;
  /** Called with each state change of a key that this node made, for the operator's log. */
  readonly onKeyStateChange: (change: object) => void;
  readonly onProblem: (problem: string, error?: unknown) => void;
  /** Begins the spans of requests to other services that belong to no call; without it they have none. */
  readonly startRequest?: StartRequest | undefined;
  /** Called at start with redirect URIs to register, for the operator's log. */
  readonly onRedirectNotice: (notice: RedirectNotice) => void;
}

export interface Issuer {
  readonly services: readonly ServedService[];
  readonly routes: WebRoutes;
  /** For other endpoints that accept tokens of other issuers. */
  readonly exchanger: Exchanger;
  /** The handler of AccessService.TestClaims. */
  readonly testClaims: ReturnType<typeof createTestClaims>;
  readonly lastSeen: LastSeen;
  /** The keys of issuers that the operator gives. */
  readonly operatorKeys: OperatorKeys;
  readonly exchanges: ExchangeCounts;
  /** Counts of its caches, by name. */
  readonly caches: Readonly<Record<"issuer_keys" | "login_providers" | "claim_patterns", CacheCounts>>;
  /** The work that one node does for all. */
  readonly jobs: readonly Job[];
  /** Starts the background work that every node does. */
  start(): void;
  stop(): Promise<void>;
}

/**
 * Creates the issuer.
 *
 * @throws Error when the file of login providers or a file of keys is not valid
 */
export function createIssuer(deps: IssuerDeps): Issuer {
  const {
    settings,
    store,
    keys,
    masterKey,
    clock,
    ids,
    origin,
    quotas,
    failureNews: news,
    onKeyStateChange,
    onProblem,
    onRedirectNotice,
  } = deps;
  const { urls: ownUrls, audiences } = origin;
  const loginProviders = readLoginProviders(settings.loginProviders);
  const fetch = createGuardedFetch({
    trustedOrigins: settings.trustedIssuers,
    proxy: settings.outboundProxy,
    operatorIssuers: loginProviders.map(({ issuer }) => issuer),
    onFailure: (reason) => onProblem(`an outbound request failed: ${reason}`),
    startRequest: deps.startRequest,
  });
  const [issuerKeys, providerCache] = [createCacheCounts(), createCacheCounts()];
  const maxTokenLifeS = settings.exchangeTokenLife;
  const operatorKeys = readOperatorKeys(settings.issuerKeys);
  const issuers = createIssuers({
    fetch,
    counts: issuerKeys,
    clock,
    isOwnIssuer: (issuer) => isOwnUrl(issuer, ownUrls),
    maxTokenLifeS,
    operatorKeys,
    onProblem: (issuer, reason) => onProblem(`the keys of ${issuer} could not be fetched: ${reason}`),
  });
  const exchanges = createExchangeCounts();
  const signer = createSigner();
  const tokens = createTokens({ keys, ids, issuer: origin.issuer, signer, counts: exchanges });
  const tickets = createTickets(masterKey);
  const idTokens = createIdTokens({ store, tickets, keys, issuer: origin.issuer, signer });
  const lastSeen = createLastSeen(store);
  const limiter = createFailureThrottle(FAILURE_LIMITS, { news, kind: "exchange" });
  const inviteLimiter = createFailureLimiter(INVITE_FAILURE_LIMIT, { news, kind: "invite" });
  const stsOrigins = settings.awsStsOrigins ?? defaultStsOrigins;
  const identifyDeps = { store, issuers, fetch, loginProviders, stsOrigins, ownUrls, audiences, maxTokenLifeS };
  const exchanger = createExchanger({ ...identifyDeps, tokens, idTokens, lastSeen, limiter, clock, counts: exchanges });
  const keyReload = createKeyReload({ keys, onProblem });
  const lastSeenFlush = createLastSeenFlush({ lastSeen, onProblem });
  const keyRotation = createKeyRotation({
    keys,
    schedule: buildKeySchedule(settings),
    onKeyStateChange: ({ kid, state }) => onKeyStateChange({ key: kid, state }),
  });
  let redirectNotices: Promise<void> | undefined;
  return {
    services: [
      createSecurityTokenService({ store, exchanger, tokens, limiter, audiences, lastSeen }),
      authV1({
        exchanger,
        ids,
        store,
        quotas,
        open: settings.registration === "open",
        inviteLimiter,
        noteTerminal: createTerminalNotes({ store, tickets }),
      }),
    ],
    routes: [
      ...createWellKnownRoutes({
        keys,
        issuer: origin.issuer,
        maxAgeS: settings.jwksMaxAge,
        connections: loginProviders.map(({ name }) => name),
      }),
      ...createLoginRoutes({
        store,
        tokens,
        exchanger,
        idTokens,
        tickets,
        masterKey,
        fetch,
        providerCache,
        clock,
        ids,
        origin,
        loginProviders,
        console: settings.console,
        registration: settings.registration,
        headlessConfirmation: settings.headlessConfirmation,
        secure: origin.baseUrl.startsWith("https:"),
        inviteLimiter,
        failureNews: news,
        quotas,
        onProblem,
      }),
    ],
    exchanger,
    testClaims: createTestClaims({ ...identifyDeps, clock }),
    lastSeen,
    operatorKeys,
    exchanges,
    caches: { issuer_keys: issuerKeys, login_providers: providerCache, claim_patterns: patternCache },
    jobs: [keyRotation, createExpiredRowSweep({ store, clock })],
    start() {
      keyReload.start();
      lastSeenFlush.start();
      redirectNotices = findRedirectNotices({ store, clock, issuer: origin.issuer, loginProviders }).then(
        (notices) => {
          for (const notice of notices) onRedirectNotice(notice);
        },
        (error) => onProblem("changed redirect URIs could not be determined", error),
      );
    },
    async stop() {
      await redirectNotices;
      await lastSeenFlush.stop();
      await keyReload.stop();
    },
  };
}
