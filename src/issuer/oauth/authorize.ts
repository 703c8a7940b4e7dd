// `GET /oauth`: the beginning of a login in a browser, up to the way to a provider.

import { Code } from "@connectrpc/connect";
import { ApiError, invalidArgument, permissionDenied } from "../../kernel/errors.js";
import { addressKey } from "../../kernel/ip-address.js";
import type { WebAnswer, WebRequest } from "../../kernel/web.js";
import { hostOf, type LoginContext } from "./context.js";
import { confirmationCodeOf, isHeadlessOpen, lockHeadlessSession, requireHeadlessKey } from "./headless.js";
import { failureOf, loginOver } from "./oauth-error.js";
import { html, redirect } from "./page.js";
import { deviceIntro, headlessPage, providerSelectionPage } from "./pages.js";
import type { Provider } from "./provider-selection.js";
import { destinationOf, loginRequestOf, namedProviderIn, normalizeCode, parametersBut } from "./request.js";
import { failed, refusedPage } from "./responses.js";
import {
  type Browser,
  browserOf,
  knownBrowserOf,
  LOGIN_MS,
  type LoginRequest,
  type NamedProvider,
  newSecret,
  requireOwnForm,
} from "./state.js";

/** `GET /oauth`: begins a login, or goes on with one that was confirmed. */
export async function beginLogin(context: LoginContext, request: WebRequest): Promise<WebAnswer> {
  const { query } = request;
  if (query.has("continue")) return goOn(context, request);
  const browser = browserOf(request, context.secure);
  let to: LoginRequest["to"];
  try {
    to = destinationOf(query);
  } catch (error) {
    return refusedPage(context, error);
  }
  try {
    const login = loginRequestOf(query, to, context.origin().audiences);
    if (to.kind === "headless") return await askForConfirmation(context, request, query, to.key, browser, false);
    return await choose(context, { login, named: namedProviderIn(query), request, browser, mayGoStraight: true });
  } catch (error) {
    return failed(context, to, error);
  }
}

// With a login that somebody confirmed before: a terminal's or a device's.
async function goOn(context: LoginContext, request: WebRequest): Promise<WebAnswer> {
  const { store, tickets, clock, secure } = context;
  const { query } = request;
  const browser = knownBrowserOf(request, secure);
  const key = query.get("continue") ?? "";
  const found = await store.read((tx) => tickets.get(tx, "authorization", key, clock()));
  if (browser === undefined || found?.stage !== "confirmed" || found.browser !== browser.hash) {
    return refusedPage(context, loginOver());
  }
  try {
    const chosen = namedProviderIn(query);
    const isChosen = chosen.connection !== undefined || chosen.idpId !== undefined;
    const named = isChosen ? chosen : found.named;
    return await choose(context, { login: found.request, named, request, browser, mayGoStraight: isChosen });
  } catch (error) {
    return refusedPage(context, error);
  }
}

interface Choosing {
  readonly login: LoginRequest;
  readonly named: NamedProvider;
  /** The request so far; links and forms repeat its query. */
  readonly request: WebRequest;
  readonly browser: Browser;
  /**
   * Whether the only provider there is may be gone to at once. Not so after a form: browsers that hold
   * redirects to its policy would not follow.
   */
  readonly mayGoStraight: boolean;
}

async function choose(context: LoginContext, choosing: Choosing): Promise<WebAnswer> {
  const { login, named, request, browser, mayGoStraight } = choosing;
  const { query } = request;
  const organisation = query.get("organisation")?.trim().slice(0, 255) || undefined;
  const found = await context.providers
    .named(organisation === undefined ? named : { idpId: organisation })
    .catch((error) => {
      if (organisation !== undefined && failureOf(error)?.status === 400) return undefined;
      throw error;
    });
  const [only, ...more] = found ?? [];
  if (only !== undefined && more.length === 0 && mayGoStraight && organisation === undefined) {
    return sendTo(context, only, choosing);
  }
  const providers = found ?? (await context.providers.named({}));
  const rest = parametersBut(query, ["connection", "idp_id", "organisation"]);
  const isOpen = named.idpId === undefined && named.connection === undefined;
  return providerSelectionPage(
    { host: hostOf(context), cookie: browser.cookie },
    {
      ...introOf(context, login, providers),
      choices: providers.map((provider) => ({ title: provider.title, href: hrefTo(provider, rest) })),
      ...(isOpen && { hidden: rest }),
      unknownOrganisation: found === undefined ? organisation : undefined,
    },
  );
}

function introOf(context: LoginContext, { to }: LoginRequest, providers: readonly Provider[]) {
  if (to.kind === "device") return { title: "Sign in for a device", intro: deviceIntro(to.asker) };
  if (providers.length === 0) {
    const text =
      "This service has no logins of its own. If your organisation has one, sign in through that; if not, ask whoever runs this service.";
    return { title: "How do you sign in?", intro: html`<p>${text}</p>` };
  }
  if (to.kind === "headless") {
    return { title: "Code confirmed", intro: html`<p>Sign in to give the terminal access in your name.</p>` };
  }
  const program = to.kind === "code" ? to.clientId : "A program";
  return {
    title: "How do you sign in?",
    intro: html`<p>${program} on this computer asks for access to ${hostOf(context)} in your name.</p>`,
  };
}

function hrefTo({ id, providerUid }: Provider, rest: [string, string][]): string {
  const query = new URLSearchParams(rest);
  query.set(providerUid === undefined ? "connection" : "idp_id", id);
  return `/oauth?${query}`;
}

async function sendTo(
  context: LoginContext,
  provider: Provider,
  { login, browser, request }: Choosing,
): Promise<WebAnswer> {
  const { store, tickets, clock, oidc, origin, startLimit } = context;
  const proofs = { state: newSecret(), nonce: newSecret(), verifier: newSecret() };
  const { nonce, verifier, state } = proofs;
  const { id, issuer, clientId, callbackPath } = provider;
  const sentTo = { id, issuer, clientId, callbackPath };
  const sent = { stage: "provider", browser: browser.hash, request: login, sentTo, nonce, verifier } as const;
  startLimit.start(request.remoteAddress, sent);
  const url = await oidc.authorizationUrl(provider, `${origin().issuer}${callbackPath}`, proofs);
  if (typeof url !== "string") return failed(context, login.to, url);
  await store.write((tx) => tickets.put(tx, "authorization", state, sent, clock() + LOGIN_MS));
  return redirect(url, browser.cookie);
}

// Confirming a headless login: whoever goes on with it sees the terminal.

/** `POST /oauth`: the code of a headless login was typed. */
export async function confirmHeadless(context: LoginContext, request: WebRequest): Promise<WebAnswer> {
  const { store, tickets, clock, secure, codeGuesses, startLimit } = context;
  const form = await request.form();
  try {
    const browser = requireOwnForm(form, knownBrowserOf(request, secure));
    const to = destinationOf(form);
    if (to.kind !== "headless") {
      throw invalidArgument({ field: "headless_code", description: "headless_code is required" });
    }
    const login = loginRequestOf(form, to, context.origin().audiences);
    const code = confirmationCodeOf(requireHeadlessKey(to.key));
    const wrong = permissionDenied("this code");
    try {
      await codeGuesses.guard([`${addressKey(request.remoteAddress)} ${to.key}`], () => {
        if (normalizeCode(form.get("user_code") ?? "") !== code) throw wrong;
      });
    } catch (error) {
      if (error === wrong) return await askForConfirmation(context, request, form, to.key, browser, true);
      // Whoever guesses here does not see the terminal: nobody should go on with this.
      if (isExhausted(error)) await store.write((tx) => lockHeadlessSession(tx, to.key, clock()));
      throw error;
    }
    const key = newSecret();
    const confirmed = {
      stage: "confirmed",
      browser: browser.hash,
      request: login,
      named: namedProviderIn(form),
    } as const;
    startLimit.start(request.remoteAddress, confirmed);
    await store.write((tx) => tickets.put(tx, "authorization", key, confirmed, clock() + LOGIN_MS));
    return redirect(`/oauth?continue=${key}`, browser.cookie);
  } catch (error) {
    return refusedPage(context, error);
  }
}

/**
 * The page that asks for the code that the terminal shows.
 *
 * @param parameters of the request; the form repeats them
 * @param key the public key of the terminal
 */
export async function askForConfirmation(
  context: LoginContext,
  request: WebRequest,
  parameters: URLSearchParams,
  key: string,
  browser: Browser,
  isWrong: boolean,
): Promise<WebAnswer> {
  const { store, clock } = context;
  if (!(await store.read((tx) => isHeadlessOpen(tx, key, clock())))) return refusedPage(context, loginOver());
  const hidden = [...parametersBut(parameters, ["form", "user_code"]), ["form", browser.formSecret] as const];
  const address = request.remoteAddress ?? "unknown";
  return headlessPage({ host: hostOf(context), cookie: browser.cookie }, { hidden, address, atMs: clock(), isWrong });
}

function isExhausted(error: unknown): boolean {
  return error instanceof ApiError && error.code === Code.ResourceExhausted;
}
