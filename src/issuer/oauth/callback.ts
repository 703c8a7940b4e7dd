// `/oauth/callback` and the paths below it: a provider sent somebody back.
import type { WebAnswer, WebRequest } from "../../kernel/web.js";
import { completeLogin } from "./complete-login.js";
import { askForConsent, needsConsent } from "./consent.js";
import type { LoginContext } from "./context.js";
import { failure, isFailure, loginOver } from "./oauth-error.js";
import { findSentTo } from "./provider-selection.js";
import { failed, failedLogin, refusedPage } from "./responses.js";
import { type Authorization, knownBrowserOf } from "./state.js";

type SentAway = Extract<Authorization, { stage: "provider" }>;

/**
 * `GET /oauth/callback` and below: the answer of a provider, which must come to the path of the one that the
 * browser was sent to. Otherwise one provider could have its own login answered by another, whose code it would
 * then get from us (OAuth mix-up).
 */
export async function callback(context: LoginContext, request: WebRequest): Promise<WebAnswer> {
  const { providers, oidc, origin, onProblem } = context;
  const state = request.query.get("state") ?? "";
  const authorization = await takeAuthorization(context, request, state);
  if (authorization === undefined) return refusedPage(context, loginOver());
  const { request: login, sentTo, nonce, verifier } = authorization;
  try {
    if (request.path !== sentTo.callbackPath) {
      onProblem(`a login that was sent to ${sentTo.id} was answered at another provider's redirect URI`);
      const mixedUp = failure("access_denied", "the answer is of another login provider than the login", 403);
      return failed(context, login.to, mixedUp);
    }
    const provider = await findSentTo(providers, sentTo);
    if (isFailure(provider)) return failed(context, login.to, provider);
    const url = new URL(`${origin().issuer}${request.path}?${request.query}`);
    const vouched = await oidc.finish(provider, url, { state, nonce, verifier });
    if (isFailure(vouched)) return failed(context, login.to, vouched);
    const concluding = { login, provider, vouched, browser: authorization.browser, request };
    return (await needsConsent(context, concluding))
      ? await askForConsent(context, concluding, sentTo)
      : await completeLogin(context, concluding);
  } catch (error) {
    return failedLogin(context, login.to, error);
  }
}

// Deleted before anything else, so that one state leads to one login. In another browser it is left
// alone: whose it is may still need it.
async function takeAuthorization(
  { store, tickets, clock, secure }: LoginContext,
  request: WebRequest,
  state: string,
): Promise<SentAway | undefined> {
  const browser = knownBrowserOf(request, secure);
  if (browser === undefined) return undefined;
  return store.write(async (tx) => {
    const found = await tickets.get(tx, "authorization", state, clock());
    if (found?.stage !== "provider" || found.browser !== browser.hash) return undefined;
    await tickets.delete(tx, state);
    return found;
  });
}
