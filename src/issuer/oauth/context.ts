import type { Refusals } from "../sts/refusals.js";
import type { LoginDeps } from "./deps.js";
import type { Oidc } from "./oidc.js";
import type { Providers } from "./provider-selection.js";
import type { StartLimit } from "./start-limit.js";
import type { Tickets } from "./tickets.js";

/** What the handlers share. */
export interface LoginContext extends LoginDeps {
  readonly tickets: Tickets;
  readonly providers: Providers;
  readonly oidc: Oidc;
  /** Count wrong codes that people type: for one code from one address, and for the address. */
  readonly codeGuesses: Refusals;
  readonly addressGuesses: Refusals;
  /** Counts the logins that addresses start. */
  readonly startLimit: StartLimit;
}
