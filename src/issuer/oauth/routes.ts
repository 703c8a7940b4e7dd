// The routes of browser login, and its story. Between requests a login is a row of `tickets`; state.ts has its forms.
//
//   GET /oauth            authorize.ts   parses the request (request.ts). Of a headless login it shows the page for the
//                                        code of the terminal, which POST /oauth takes. Where several providers fit, it
//                                        shows their selection (provider-selection.ts). Then the ticket is in the stage
//                                        `provider`, and the browser goes to the provider (oidc.ts).
//   GET /oauth/callback   callback.ts    takes that ticket, and exchanges the provider's code for a verified ID token.
//   /oauth/consent        consent.ts     an invite, a program on a loopback port or pending bindings need the decision
//                                        of the person: stage `consent`.
//   complete-login.ts                    signs the person in (iam/people/sign-in.ts) in one transaction, and delivers the
//                                        outcome: a redirect with tokens, a code, the encrypted result of a terminal
//                                        (headless.ts), or the approval of a device: stage `approval`.
//   POST /oauth/token     token.ts       exchanges the code (pkce.ts), the device code or a refresh token for an API token
//                                        (../tokens.ts). POST /oauth/revoke ends the login of a refresh token.
//
// A device begins with POST /oauth/device_authorization and polls the token endpoint (device.ts). Its person types the
// code at /activate, which stores a ticket in the stage `confirmed`; GET /oauth?continue= goes on with that.
// The web console gets its code in the same way, and redeems it at POST /console/session (../console/session.ts).
// browser.ts binds each ticket to the browser that began the login; start-limit.ts bounds how many there are.
import { CALLBACK_PATH, publicForm, publicPage, type WebRoutes } from "../../kernel/web.js";
import { createSessionRoute } from "../console/session.js";
import { createFailureLimiter } from "../sts/failure-limiter.js";
import { createFailureThrottle } from "../sts/failure-throttle.js";
import { beginLogin, confirmHeadless } from "./authorize.js";
import { handleCallback } from "./callback.js";
import { CONSENT_PATH, decideConsent, showConsent } from "./consent.js";
import type { LoginContext, LoginDeps } from "./context.js";
import { activate, authorizeDevice, showActivate } from "./device.js";
import { createOidcClient } from "./oidc.js";
import { createOrgCheck, createProviders } from "./provider-selection.js";
import { handleRevocation, handleToken } from "./token.js";

/** Wrong codes of one headless login from one address, within ten minutes. */
const CODE_FAILURE_LIMIT = { points: 10, seconds: 600 };
/** Wrong user codes of devices within ten minutes, before browser and address are slowed down. */
const USER_CODE_FAILURES = { perName: { points: 10, seconds: 600 }, perAddress: { points: 30, seconds: 600 } };

/** A token of another issuer with many group claims may fill half of this. */
const MAX_TOKEN_FORM_BYTES = 32 * 1024;

/** Creates the routes of login pages and OAuth endpoints. */
export function createLoginRoutes(deps: LoginDeps): WebRoutes {
  const { failureNews: news } = deps;
  const context: LoginContext = {
    ...deps,
    providers: createProviders(deps),
    oidc: createOidcClient(deps),
    codeLimiter: createFailureLimiter(CODE_FAILURE_LIMIT, { news, kind: "code" }),
    userCodes: createFailureThrottle(USER_CODE_FAILURES, { news, kind: "user code" }),
  };
  return [
    publicPage("/oauth", (request) => beginLogin(context, request)),
    publicForm("/oauth", (request) => confirmHeadless(context, request)),
    publicPage(CALLBACK_PATH, (request) => handleCallback(context, request)),
    publicPage(`${CALLBACK_PATH}/*`, (request) => handleCallback(context, request)),
    publicPage(CONSENT_PATH, (request) => showConsent(context, request)),
    publicForm(CONSENT_PATH, (request) => decideConsent(context, request)),
    publicForm("/oauth/token", (request) => handleToken(context, request), MAX_TOKEN_FORM_BYTES),
    publicForm("/oauth/revoke", (request) => handleRevocation(context, request)),
    publicForm("/oauth/device_authorization", (request) => authorizeDevice(context, request)),
    publicPage("/activate", (request) => showActivate(context, request)),
    publicForm("/activate", (request) => activate(context, request)),
    publicPage("/orgcheck", createOrgCheck(deps)),
    ...(deps.console ? [createSessionRoute(context)] : []),
  ];
}
