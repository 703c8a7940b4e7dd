import type { Clock } from "../../kernel/clock.js";
import type { Ids } from "../../kernel/ids.js";
import type { GuardedFetch } from "../../outbound/guarded-fetch.js";
import type { Quotas } from "../../pipeline/quotas.js";
import type { Store } from "../../store/port.js";
import type { MasterKey } from "../keys/master-key.js";
import type { Exchanger } from "../sts/exchange.js";
import type { FailureLimiter } from "../sts/failure-limiter.js";
import type { Tokens } from "../tokens.js";
import type { LoginProvider } from "./login-providers.js";
import type { Oidc } from "./oidc.js";
import type { Providers } from "./provider-selection.js";
import type { StartLimit } from "./start-limit.js";
import type { Tickets } from "./state.js";

/** What logging in needs. */
export interface LoginDeps {
  readonly store: Store;
  readonly tokens: Tokens;
  readonly exchanger: Pick<Exchanger, "exchange">;
  readonly masterKey: MasterKey;
  /** The only way by which providers are asked. */
  readonly fetch: GuardedFetch;
  readonly clock: Clock;
  readonly ids: Ids;
  /** How the service is called, asked each time: the address may be known late. */
  readonly origin: () => LoginOrigin;
  readonly loginProviders: readonly LoginProvider[];
  /** Whether people may register without an invite. */
  readonly registration: "invite" | "open";
  /** Whether browsers reach the service by https. */
  readonly secure: boolean;
  readonly quotas: Quotas;
  /** Counts wrong codes of invites; shared with whatever else takes them. */
  readonly guesses: FailureLimiter;
  /** For the operator's log. */
  readonly onProblem: (problem: string, error?: unknown) => void;
}

/** How the service is called. */
export interface LoginOrigin {
  readonly issuer: string;
  /** What the `aud` of a token may be; the first is what it is unless asked. */
  readonly audiences: readonly string[];
}

/** The name of this service as people see it. */
export function hostOf({ origin }: Pick<LoginDeps, "origin">): string {
  return new URL(origin().issuer).host;
}

/** What the handlers share. */
export interface LoginContext extends LoginDeps {
  readonly tickets: Tickets;
  readonly providers: Providers;
  readonly oidc: Oidc;
  /** Count wrong codes that people type: for one code from one address, and for the address. */
  readonly codeGuesses: FailureLimiter;
  readonly addressGuesses: FailureLimiter;
  /** Counts the logins that addresses start. */
  readonly startLimit: StartLimit;
}
