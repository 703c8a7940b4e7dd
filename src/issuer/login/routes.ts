// Browser login put together: what is served where.
import type { WebRoutes } from "../../kernel/web.js";
import { createRefusals } from "../exchange/refusals.js";
import { beginLogin, CALLBACK } from "./authorize.js";
import { callback } from "./callback.js";
import { createProviders } from "./choice.js";
import { confirmHeadless } from "./confirm.js";
import type { LoginContext, LoginDeps } from "./deps.js";
import { activate, authorizeDevice, showActivate } from "./device.js";
import { createOidc } from "./oidc.js";
import { orgCheck } from "./orgcheck.js";
import { createTickets } from "./tickets.js";
import { token } from "./token.js";

/** Wrong tries at one code from one address, within ten minutes. */
const CODE_GUESSES = { points: 10, seconds: 600, blocks: true };
/** Wrong tries at codes of devices from one address, within ten minutes. */
const ADDRESS_GUESSES = { points: 30, seconds: 600, blocks: true };

/** The endpoints and pages of browser login. */
export function loginRoutes(deps: LoginDeps): WebRoutes {
  const context: LoginContext = {
    ...deps,
    tickets: createTickets(deps.masterKey),
    providers: createProviders(deps),
    oidc: createOidc(deps),
    codeGuesses: createRefusals(CODE_GUESSES),
    addressGuesses: createRefusals(ADDRESS_GUESSES),
  };
  return {
    "/oauth": {
      GET: (request) => beginLogin(context, request),
      POST: (request) => confirmHeadless(context, request),
    },
    [CALLBACK]: { GET: (request) => callback(context, request) },
    "/oauth/token": { POST: (request) => token(context, request) },
    "/oauth/device_authorization": { POST: (request) => authorizeDevice(context, request) },
    "/activate": {
      GET: (request) => showActivate(context, request),
      POST: (request) => activate(context, request),
    },
    "/orgcheck": { GET: orgCheck(deps) },
  };
}
