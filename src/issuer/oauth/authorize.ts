// `GET /oauth` and `POST /oauth`: a login in a browser, from the first request to the redirect to a provider.

import { Code } from "@connectrpc/connect";
import { ApiError, invalidArgument, permissionDenied } from "../../kernel/errors.js";
import { addressKey } from "../../kernel/ip-address.js";
import type { WebRequest, WebResponse } from "../../kernel/web.js";
import { isForConsole } from "../console/client.js";
import { type Browser, findBrowser, getBrowser, LOGIN_MS, requireOwnForm } from "./browser.js";
import { hostOf, type LoginContext } from "./context.js";
import {
  computeConfirmationCode,
  findTerminal,
  isHeadlessOpen,
  lockHeadlessSession,
  requireHeadlessKey,
  showsCode,
} from "./headless.js";
import { html } from "./html.js";
import { interactionRequired, loginOverError, oauthError, toOAuthError } from "./oauth-error.js";
import { redirect } from "./page.js";
import {
  CONFIRMATION,
  renderDeviceIntro,
  renderExplicitPage,
  renderHeadlessPage,
  renderProviderSelection,
} from "./pages.js";
import type { Provider } from "./provider-selection.js";
import {
  normalizeCode,
  normalizeWords,
  omitEmpty,
  omitParameters,
  parseDestination,
  parseLoginRequest,
  parseNamedProvider,
} from "./request.js";
import { renderErrorPage, respondWithError } from "./responses.js";
import { assertSmall, originOf, prepareStart } from "./start-limit.js";
import type { Authorization, HeadlessDestination, LoginRequest, NamedProvider } from "./state.js";
import { createSecret } from "./tickets.js";

/** `GET /oauth`: starts a login, or continues one whose code was confirmed. */
export async function beginLogin(context: LoginContext, request: WebRequest): Promise<WebResponse> {
  if (!isNavigation(request)) return renderErrorPage(context, notAPage());
  const query = omitEmpty(request.query);
  if (query.has("continue")) return continueLogin(context, request, query);
  const browser = getBrowser(request, context.secure);
  let to: LoginRequest["to"];
  try {
    to = parseDestination(query, context);
  } catch (error) {
    return renderErrorPage(context, error);
  }
  try {
    const login = parseLoginRequest(query, to, context);
    if (to.kind === "headless") return await showConfirmation(context, request, query, to, browser, false);
    return await selectProvider(context, {
      login,
      named: parseNamedProvider(query),
      query,
      request,
      browser,
      mayRedirect: true,
    });
  } catch (error) {
    return respondWithError(context, to, error);
  }
}

// Browsers say what a request is for (Fetch Metadata). Images, frames and scripts of another site could otherwise start
// hundreds of logins in the name of a person who visits it.
function isNavigation(request: WebRequest): boolean {
  return (request.header("sec-fetch-dest") ?? "document") === "document";
}

function notAPage() {
  return oauthError("invalid_request", "a login starts in a window or tab of its own, not within another page", 403);
}

// Continues the login of a terminal or a device after its code was typed.
async function continueLogin(context: LoginContext, request: WebRequest, query: URLSearchParams): Promise<WebResponse> {
  const { store, tickets, clock, secure } = context;
  const browser = findBrowser(request, secure);
  const key = query.get("continue") ?? "";
  const found = await store.read((tx) => tickets.find(tx, "authorization", key, clock()));
  if (browser === undefined || found?.stage !== "confirmed" || found.browser !== browser.hash) {
    return renderErrorPage(context, loginOverError());
  }
  try {
    const chosen = parseNamedProvider(query);
    const isChosen = chosen.connection !== undefined || chosen.idpId !== undefined;
    const named = isChosen ? chosen : found.named;
    const login = found.request;
    return await selectProvider(context, { login, named, query, request, browser, mayRedirect: isChosen });
  } catch (error) {
    return renderErrorPage(context, error);
  }
}

interface ProviderSelection {
  readonly login: LoginRequest;
  readonly named: NamedProvider;
  /** Links and forms of the page repeat it. */
  readonly query: URLSearchParams;
  readonly request: WebRequest;
  readonly browser: Browser;
  /**
   * Whether the browser is redirected at once when there is one provider. After a form it is not: some browsers apply
   * form-action to the redirects that follow a form.
   */
  readonly mayRedirect: boolean;
}

async function selectProvider(context: LoginContext, selection: ProviderSelection): Promise<WebResponse> {
  const { login, named, query, browser, mayRedirect } = selection;
  const organisation = query.get("organisation")?.trim().slice(0, 255) || undefined;
  const found = await context.providers
    .findNamed(organisation === undefined ? named : { idpId: organisation })
    .catch((error) => {
      if (organisation !== undefined && toOAuthError(error)?.status === 400) return undefined;
      throw error;
    });
  const [only, ...more] = found ?? [];
  if (only !== undefined && more.length === 0 && mayRedirect && organisation === undefined) {
    return redirectToProvider(context, only, selection);
  }
  if (login.prompt === "none") return respondWithError(context, login.to, interactionRequired());
  const providers = found ?? (await context.providers.findNamed({}));
  const rest = omitParameters(query, ["connection", "idp_id", "organisation"]);
  const isOpen = named.idpId === undefined && named.connection === undefined;
  return renderProviderSelection(
    { host: hostOf(context), cookie: browser.cookie },
    {
      ...buildIntro(context, login, providers),
      links: providers.map((provider) => ({ title: provider.title, href: buildHref(provider, rest) })),
      ...(isOpen && { hidden: rest }),
      unknownOrganisation: found === undefined ? organisation : undefined,
    },
  );
}

function buildIntro(context: LoginContext, { to }: LoginRequest, providers: readonly Provider[]) {
  if (to.kind === "device") return { title: "Sign in for a device", intro: renderDeviceIntro(to.asker) };
  if (providers.length === 0) {
    const text =
      "This service has no logins of its own. If your organisation has one, sign in through that; if not, ask its operator.";
    return { title: "How do you sign in?", intro: html`<p>${text}</p>` };
  }
  if (to.kind === "headless") {
    const intro = html`<p>Sign in to give the terminal access in your name.</p>`;
    return { title: showsCode(to) ? "Code confirmed" : "Confirmed", intro };
  }
  const title = "How do you sign in?";
  if (isForConsole(to, context.origin)) {
    return { title, intro: html`<p>Sign in to the console of ${hostOf(context)}.</p>` };
  }
  const program = to.kind === "code" ? to.clientId : "A program";
  return {
    title,
    intro: html`<p>${program} on this computer asks for access to ${hostOf(context)} in your name.</p>`,
  };
}

function buildHref({ id, providerUid }: Provider, rest: [string, string][]): string {
  const query = new URLSearchParams(rest);
  query.set(providerUid === undefined ? "connection" : "idp_id", id);
  return `/oauth?${query}`;
}

async function redirectToProvider(
  context: LoginContext,
  provider: Provider,
  { login, browser, request }: ProviderSelection,
): Promise<WebResponse> {
  const { oidc, origin } = context;
  const secrets = { state: createSecret(), nonce: createSecret(), verifier: createSecret() };
  const { nonce, verifier, state } = secrets;
  const { id, issuer, clientId, callbackPath } = provider;
  const sentTo = { id, issuer, clientId, callbackPath };
  const sent = { stage: "provider", browser: browser.hash, request: login, sentTo, nonce, verifier } as const;
  const url = await oidc.authorizationUrl(provider, `${origin.issuer}${callbackPath}`, secrets, login.prompt);
  if (typeof url !== "string") return respondWithError(context, login.to, url);
  await storeLogin(context, request, browser, { key: state, login: sent });
  return redirect(url, browser.cookie);
}

// A login that begins, or continues after its code was typed.
async function storeLogin(
  { store, tickets, clock }: LoginContext,
  { remoteAddress }: WebRequest,
  { isKnown }: Browser,
  { key, login }: { readonly key: string; readonly login: Authorization },
): Promise<void> {
  assertSmall(login);
  const nowMs = clock();
  const start = await prepareStart(store, "authorization", originOf(remoteAddress, isKnown), nowMs);
  await store.write((tx) => tickets.start(tx, "authorization", key, login, nowMs + LOGIN_MS, start));
}

// A headless login of the command line continues only for a person who sees the terminal: they type the code that it
// shows. Other programs show none. There the person confirms in words, unless the operator rejects such programs.

/** `POST /oauth`: a person typed the code of a headless login, or confirmed it in words. */
export async function confirmHeadless(context: LoginContext, request: WebRequest): Promise<WebResponse> {
  const { secure } = context;
  const form = omitEmpty(await request.form());
  try {
    const browser = requireOwnForm(form, findBrowser(request, secure));
    const to = parseDestination(form, context);
    if (to.kind !== "headless") {
      throw invalidArgument({ field: "headless_code", rule: "is required" });
    }
    const login = parseLoginRequest(form, to, context);
    if (!(await isConfirmed(context, request, form, to))) {
      return await showConfirmation(context, request, form, to, browser, true);
    }
    const key = createSecret();
    const confirmed = {
      stage: "confirmed",
      browser: browser.hash,
      request: login,
      named: parseNamedProvider(form),
    } as const;
    await storeLogin(context, request, browser, { key, login: confirmed });
    return redirect(`/oauth?continue=${key}`, browser.cookie);
  } catch (error) {
    return renderErrorPage(context, error);
  }
}

/** Whether the form has the code of the terminal, or for a program that shows none the words of the page. */
async function isConfirmed(
  context: LoginContext,
  request: WebRequest,
  form: URLSearchParams,
  to: HeadlessDestination,
): Promise<boolean> {
  const { store, clock, codeLimiter } = context;
  if (!showsCode(to)) {
    requireWordsAllowed(context);
    return normalizeWords(form.get("confirmation") ?? "") === CONFIRMATION;
  }
  const code = computeConfirmationCode(requireHeadlessKey(to.key));
  const wrong = permissionDenied("this code");
  try {
    await codeLimiter.guard([`${addressKey(request.remoteAddress)} ${to.key}`], () => {
      if (normalizeCode(form.get("user_code") ?? "") !== code) throw wrong;
    });
    return true;
  } catch (error) {
    if (error === wrong) return false;
    // A person who guesses does not see the terminal, so the login ends.
    if (isExhausted(error)) await store.write((tx) => lockHeadlessSession(tx, to.key, clock()));
    throw error;
  }
}

/**
 * Responses with the page that asks for the code of the terminal, or for a confirmation in words.
 *
 * @param parameters of the request, which the form repeats
 */
async function showConfirmation(
  context: LoginContext,
  request: WebRequest,
  parameters: URLSearchParams,
  to: HeadlessDestination,
  browser: Browser,
  isWrong: boolean,
): Promise<WebResponse> {
  const { store, tickets, clock } = context;
  const nowMs = clock();
  if (!showsCode(to)) requireWordsAllowed(context);
  const { isOpen, terminal } = await store.read(async (tx) => ({
    isOpen: await isHeadlessOpen(tx, to.key, nowMs),
    terminal: await findTerminal(tx, tickets, to.key, nowMs),
  }));
  if (!isOpen) return renderErrorPage(context, loginOverError());
  const repeated = omitParameters(parameters, ["form", "user_code", "confirmation"]);
  const frame = { host: hostOf(context), cookie: browser.cookie };
  const address = request.remoteAddress ?? "unknown";
  const page = { hidden: [...repeated, ["form", browser.formSecret] as const], address, atMs: nowMs, isWrong };
  return showsCode(to)
    ? renderHeadlessPage(frame, page)
    : renderExplicitPage(frame, { ...page, clientId: to.clientId, terminal });
}

function requireWordsAllowed({ headlessConfirmation }: LoginContext): void {
  if (headlessConfirmation === "explicit") return;
  const rule = "this service accepts headless logins of programs that show a code, such as arbor auth login --headless";
  throw invalidArgument({ field: "client_id", subject: "", rule });
}

function isExhausted(error: unknown): boolean {
  return error instanceof ApiError && error.code === Code.ResourceExhausted;
}
