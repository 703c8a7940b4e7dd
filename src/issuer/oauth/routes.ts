// The routes of browser login.
import { CALLBACK_PATH, publicForm, publicPage, type WebRoutes } from "../../kernel/web.js";
import { createFailureLimiter } from "../sts/failure-limiter.js";
import { createFailureThrottle } from "../sts/failure-throttle.js";
import { beginLogin, confirmHeadless } from "./authorize.js";
import { handleCallback } from "./callback.js";
import { CONSENT_PATH, decideConsent, showConsent } from "./consent.js";
import type { LoginContext, LoginDeps } from "./context.js";
import { activate, authorizeDevice, showActivate } from "./device.js";
import { createOidcClient } from "./oidc.js";
import { createOrgCheck, createProviders } from "./provider-selection.js";
import { handleToken } from "./token.js";

/** Wrong codes of one headless login from one address, within ten minutes. */
const CODE_FAILURE_LIMIT = { points: 10, seconds: 600 };
/** Wrong user codes of devices within ten minutes, before browser and address are slowed down. */
const USER_CODE_FAILURES = { perName: { points: 10, seconds: 600 }, perAddress: { points: 30, seconds: 600 } };

/** A token of another issuer with many group claims may fill half of this. */
const MAX_TOKEN_FORM_BYTES = 32 * 1024;

/** Creates the routes of login pages and OAuth endpoints. */
export function createLoginRoutes(deps: LoginDeps): WebRoutes {
  const context: LoginContext = {
    ...deps,
    providers: createProviders(deps),
    oidc: createOidcClient(deps),
    codeLimiter: createFailureLimiter(CODE_FAILURE_LIMIT),
    userCodes: createFailureThrottle(USER_CODE_FAILURES),
  };
  return [
    publicPage("/oauth", (request) => beginLogin(context, request)),
    publicForm("/oauth", (request) => confirmHeadless(context, request)),
    publicPage(CALLBACK_PATH, (request) => handleCallback(context, request)),
    publicPage(`${CALLBACK_PATH}/*`, (request) => handleCallback(context, request)),
    publicPage(CONSENT_PATH, (request) => showConsent(context, request)),
    publicForm(CONSENT_PATH, (request) => decideConsent(context, request)),
    publicForm("/oauth/token", (request) => handleToken(context, request), MAX_TOKEN_FORM_BYTES),
    publicForm("/oauth/device_authorization", (request) => authorizeDevice(context, request)),
    publicPage("/activate", (request) => showActivate(context, request)),
    publicForm("/activate", (request) => activate(context, request)),
    publicPage("/orgcheck", createOrgCheck(deps)),
  ];
}
