// The routes of browser login.
import {
  CALLBACK_PATH,
  publicForm,
  publicPage,
  type WebRequest,
  type WebResponse,
  type WebRoutes,
} from "../../kernel/web.js";
import { createFailureLimiter } from "../sts/failure-limiter.js";
import { createFailureThrottle } from "../sts/failure-throttle.js";
import { beginLogin, confirmHeadless } from "./authorize.js";
import { completeLogin } from "./complete-login.js";
import { askForConsent, CONSENT_PATH, decideConsent, needsConsent, showConsent } from "./consent.js";
import type { LoginContext, LoginDeps } from "./context.js";
import { activate, authorizeDevice, showActivate } from "./device.js";
import { isOAuthError, loginOverError, oauthError } from "./oauth-error.js";
import { createOidcClient } from "./oidc.js";
import { createOrgCheck, createProviders, getSentProvider } from "./provider-selection.js";
import { renderErrorPage, respondToFailedLogin, respondWithError } from "./responses.js";
import { type Authorization, findBrowser } from "./state.js";
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

// `/oauth/callback` and `/oauth/callback/ID`: a provider redirects the browser back.

type ProviderStage = Extract<Authorization, { stage: "provider" }>;

/**
 * `GET /oauth/callback` and `GET /oauth/callback/ID`: the authorization response of a provider. It must arrive at the
 * redirect URI of the provider that the browser was sent to. Otherwise a malicious provider could receive the code of
 * another provider (mix-up attack, RFC 9700, section 4.4).
 */
async function handleCallback(context: LoginContext, request: WebRequest): Promise<WebResponse> {
  const { providers, oidc, origin, onProblem } = context;
  const state = request.query.get("state") ?? "";
  const authorization = await takeAuthorization(context, request, state);
  if (authorization === undefined) return renderErrorPage(context, loginOverError());
  const { request: login, sentTo, nonce, verifier } = authorization;
  try {
    if (request.path !== sentTo.callbackPath) {
      onProblem(`the response to a login that was sent to ${sentTo.id} came to another provider's redirect URI`);
      const mixedUp = oauthError("access_denied", "the response is of another login provider than the login", 403);
      return respondWithError(context, login.to, mixedUp);
    }
    const provider = await getSentProvider(providers, sentTo);
    if (isOAuthError(provider)) return respondWithError(context, login.to, provider);
    const url = new URL(`${origin.issuer}${request.path}?${request.query}`);
    const verified = await oidc.exchangeCode(provider, url, { state, nonce, verifier });
    if (isOAuthError(verified)) return respondWithError(context, login.to, verified);
    const completion = { login, provider, verified, browser: authorization.browser, request };
    return (await needsConsent(context, completion))
      ? await askForConsent(context, completion, sentTo)
      : await completeLogin(context, completion);
  } catch (error) {
    return respondToFailedLogin(context, login.to, error);
  }
}

// Deletes the state first, so that one state completes one login. State of another browser stays, because its owner
// may still need it.
async function takeAuthorization(
  { store, tickets, clock, secure }: LoginContext,
  request: WebRequest,
  state: string,
): Promise<ProviderStage | undefined> {
  const browser = findBrowser(request, secure);
  if (browser === undefined) return undefined;
  return store.write(async (tx) => {
    const found = await tickets.find(tx, "authorization", state, clock());
    if (found?.stage !== "provider" || found.browser !== browser.hash) return undefined;
    await tickets.delete(tx, state);
    return found;
  });
}
