// Browser login put together: what is served where.

import { CALLBACK, publicForm, publicPage, type WebRoutes } from "../../kernel/web.js";
import { createFailureLimiter } from "../sts/failure-limiter.js";
import { beginLogin, confirmHeadless } from "./authorize.js";
import { callback } from "./callback.js";
import { CONSENT, decideConsent, showConsent } from "./consent.js";
import type { LoginContext, LoginDeps } from "./context.js";
import { activate, authorizeDevice, showActivate } from "./device.js";
import { createOidc } from "./oidc.js";
import { createProviders, orgCheck } from "./provider-selection.js";
import { createStartLimit } from "./start-limit.js";
import { createTickets } from "./state.js";
import { token } from "./token.js";

/** Wrong tries at one code from one address, within ten minutes. */
const CODE_GUESSES = { points: 10, seconds: 600 };
/** Wrong tries at codes of devices from one address, within ten minutes. */
const ADDRESS_GUESSES = { points: 30, seconds: 600 };

/** A token of another issuer with the groups of a directory may fill half of this. */
const MAX_TOKEN_FORM_BYTES = 32 * 1024;

/** The endpoints and pages of browser login. */
export function loginRoutes(deps: LoginDeps): WebRoutes {
  const context: LoginContext = {
    ...deps,
    tickets: createTickets(deps.masterKey),
    providers: createProviders(deps),
    oidc: createOidc(deps),
    codeGuesses: createFailureLimiter(CODE_GUESSES),
    addressGuesses: createFailureLimiter(ADDRESS_GUESSES),
    startLimit: createStartLimit(deps.clock),
  };
  return [
    publicPage("/oauth", (request) => beginLogin(context, request)),
    publicForm("/oauth", (request) => confirmHeadless(context, request)),
    publicPage(CALLBACK, (request) => callback(context, request)),
    publicPage(`${CALLBACK}/*`, (request) => callback(context, request)),
    publicPage(CONSENT, (request) => showConsent(context, request)),
    publicForm(CONSENT, (request) => decideConsent(context, request)),
    publicForm("/oauth/token", (request) => token(context, request), MAX_TOKEN_FORM_BYTES),
    publicForm("/oauth/device_authorization", (request) => authorizeDevice(context, request)),
    publicPage("/activate", (request) => showActivate(context, request)),
    publicForm("/activate", (request) => activate(context, request)),
    publicPage("/orgcheck", orgCheck(deps)),
  ];
}
