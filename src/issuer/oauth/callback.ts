// The callback of a provider: `/oauth/callback` and `/oauth/callback/ID`, where it redirects the browser back.
import { Code } from "@connectrpc/connect";
import { findMissingClaim } from "../../iam/people/sign-in.js";
import { ApiError } from "../../kernel/errors.js";
import type { WebRequest, WebResponse } from "../../kernel/web.js";
import { findBrowser } from "./browser.js";
import { completeLogin } from "./complete-login.js";
import { askForConsent, needsConsent } from "./consent.js";
import type { LoginContext } from "./context.js";
import { interactionRequired, isOAuthError, loginOverError, oauthError } from "./oauth-error.js";
import type { VerifiedIdToken } from "./oidc.js";
import { getSentProvider, type Provider } from "./provider-selection.js";
import { renderErrorPage, respondToFailedLogin, respondWithError } from "./responses.js";
import type { Authorization } from "./state.js";

type ProviderStage = Extract<Authorization, { stage: "provider" }>;

/**
 * `GET /oauth/callback` and `GET /oauth/callback/ID`: the authorization response of a provider. It must arrive at the
 * redirect URI of the provider that the browser was sent to. Otherwise a malicious provider could receive the code of
 * another provider (mix-up attack, RFC 9700, section 4.4).
 */
export async function handleCallback(context: LoginContext, request: WebRequest): Promise<WebResponse> {
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
    const verified = await oidc.exchangeCode(provider, url, { state, nonce, verifier }, login.prompt);
    if (isOAuthError(verified)) return respondWithError(context, login.to, verified);
    const completion = { login, provider, verified, browser: authorization.browser, request };
    try {
      if (!(await needsConsent(context, completion))) return await completeLogin(context, completion);
      if (login.prompt === "none") return respondWithError(context, login.to, interactionRequired());
      return await askForConsent(context, completion, sentTo);
    } catch (error) {
      reportMissingClaim(context, provider, verified, error);
      throw error;
    }
  } catch (error) {
    return respondToFailedLogin(context, login.to, error);
  }
}

// Tells the operator why a person who is expected by an e-mail address was not recognised by it.
function reportMissingClaim(
  { onProblem }: Pick<LoginContext, "onProblem">,
  { id, providerUid }: Provider,
  { claims }: VerifiedIdToken,
  error: unknown,
): void {
  if (!(error instanceof ApiError && error.code === Code.NotFound) || providerUid !== undefined) return;
  const missing = findMissingClaim({ claims });
  if (missing === undefined) return;
  onProblem(
    `a person without an account signed in with ${id}, and neither the ID token nor UserInfo has ${missing}: let the ` +
      "provider state email and email_verified in one of them, see docs/login.md",
  );
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
