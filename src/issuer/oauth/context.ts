import type { Ids } from "../../kernel/ids.js";
import type { LoginProvider } from "../../kernel/login-providers.js";
import type { Clock } from "../../kernel/time.js";
import type { GuardedFetch } from "../../outbound/guarded-fetch.js";
import type { CacheCounts } from "../../pipeline/auth/authenticate.js";
import type { Quotas } from "../../pipeline/resource/quota.js";
import type { Store } from "../../store/store.js";
import type { MasterKey } from "../keys/master-key.js";
import type { Exchanger } from "../sts/exchange.js";
import type { FailureLimiter, FailureNews } from "../sts/failure-limiter.js";
import type { FailureThrottle } from "../sts/failure-throttle.js";
import type { Tokens } from "../tokens.js";
import type { IdTokens } from "./id-tokens.js";
import type { OidcClient } from "./oidc.js";
import type { Providers } from "./provider-selection.js";
import type { Tickets } from "./tickets.js";

/** How a headless login is confirmed whose program shows no code: in words (`explicit`), or not at all (`code`). */
export type HeadlessConfirmation = "explicit" | "code";

export interface LoginDeps {
  readonly store: Store;
  readonly tokens: Tokens;
  readonly exchanger: Pick<Exchanger, "exchange">;
  readonly idTokens: Pick<IdTokens, "create" | "prepare">;
  readonly tickets: Tickets;
  readonly masterKey: MasterKey;
  /** All requests to providers go through it. */
  readonly fetch: GuardedFetch;
  /** Counts lookups in the cache of their metadata. */
  readonly providerCache?: CacheCounts;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly origin: LoginOrigin;
  readonly loginProviders: readonly LoginProvider[];
  /** Whether the web console is served. */
  readonly console: boolean;
  /** Whether people may register without an invite. */
  readonly registration: "invite" | "open";
  readonly headlessConfirmation: HeadlessConfirmation;
  /** Whether browsers reach the service over HTTPS. */
  readonly secure: boolean;
  readonly quotas: Quotas;
  /** Limits wrong invite codes; shared with the other methods that accept invites. */
  readonly inviteLimiter: FailureLimiter;
  /** Shares failed attempts with other workers. */
  readonly failureNews: FailureNews;
  /** Writes to the operator's log. */
  readonly onProblem: (problem: string, error?: unknown) => void;
}

/** The URLs of the service. */
export interface LoginOrigin {
  readonly baseUrl: string;
  readonly issuer: string;
  /** The accepted values of a token's `aud`; the first is the default. */
  readonly audiences: readonly string[];
}

/** The host name of this service, as pages show it. */
export function hostOf({ origin }: Pick<LoginDeps, "origin">): string {
  return new URL(origin.issuer).host;
}

/** What the handlers of all login routes share. */
export interface LoginContext extends LoginDeps {
  readonly providers: Providers;
  readonly oidc: OidcClient;
  /** Limits wrong codes of one headless login. */
  readonly codeLimiter: FailureLimiter;
  /** Slows down browsers and addresses that try user codes of devices. */
  readonly userCodes: FailureThrottle;
}
