// `/oauth/callback`: a provider sent somebody back.
import type { WebAnswer, WebRequest } from "../../kernel/web.js";
import { CALLBACK } from "./authorize.js";
import { knownBrowserOf } from "./browser.js";
import { conclude } from "./conclude.js";
import { failed, refusedPage } from "./deliver.js";
import type { LoginContext } from "./deps.js";
import { failure, failureOf, isFailure, loginOver } from "./failure.js";
import type { Authorization } from "./state.js";

type SentAway = Extract<Authorization, { stage: "provider" }>;

/** `GET /oauth/callback`. */
export async function callback(context: LoginContext, request: WebRequest): Promise<WebAnswer> {
  const { providers, oidc, origin, onProblem } = context;
  const state = request.query.get("state") ?? "";
  const authorization = await takeAuthorization(context, request, state);
  if (authorization === undefined) return refusedPage(context, loginOver());
  const { request: login, sentTo, nonce, verifier } = authorization;
  try {
    const provider = await providers.withId(sentTo.id);
    if (provider?.issuer !== sentTo.issuer || provider.clientId !== sentTo.clientId) {
      const changed = failure("access_denied", "the login provider was changed in the meantime", 403);
      return failed(context, login.to, changed);
    }
    const url = new URL(`${origin().issuer}${CALLBACK}?${request.query}`);
    const vouched = await oidc.finish(provider, url, { state, nonce, verifier });
    if (isFailure(vouched)) return failed(context, login.to, vouched);
    return await conclude(context, { login, provider, vouched, browser: authorization.browser, request });
  } catch (error) {
    if (error instanceof Error && failureOf(error) === undefined) {
      // The program must not wait for ever for what went wrong here.
      onProblem("a login could not be finished", error);
      return failed(context, login.to, failure("server_error", "the login could not be finished", 500));
    }
    return failed(context, login.to, error);
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
