// Parses login requests (`GET /oauth` in the three forms that clients use) and the parameters of OAuth endpoints.
import { invalidArgument, invalidRequest } from "../../kernel/errors.js";
import { isUidp } from "../../kernel/uidp.js";
import { buildConsoleRedirectUri, CONSOLE_CLIENT_ID, isForConsole } from "../console/client.js";
import { isOwnUrl } from "../sts/audience.js";
import { parseTokenGrant, type TokenRequest } from "../sts/token-request.js";
import type { LoginContext } from "./context.js";
import { requireHeadlessKey } from "./headless.js";
import { requireChallenge } from "./pkce.js";
import type { Destination, LoginPrompt, LoginRequest, NamedProvider } from "./state.js";

const MAX_STATE = 1024;
const MAX_NONCE = 512;
/** The audience of the tokens that sign events, which receivers accept from this issuer. */
const EVENT_AUDIENCE = "customer";

/**
 * Parses where the outcome of the login goes. Errors in the rest of the request are reported there, so this is parsed
 * first.
 *
 * @throws ApiError INVALID_ARGUMENT when the destination is malformed or not allowed
 */
export function parseDestination(
  query: URLSearchParams,
  { origin, console: hasConsole }: Pick<LoginContext, "origin" | "console">,
): Exclude<Destination, { kind: "device" }> {
  const forms = ["headless_code", "response_type", "redirect"].filter((name) => query.has(name));
  const [form] = forms;
  if (form === undefined || forms.length > 1) {
    throw invalidRequest("this page is opened by programs, with response_type, redirect or headless_code");
  }
  if (form === "headless_code") {
    const key = findParameter(query, "headless_code") ?? "";
    requireHeadlessKey(key);
    return { kind: "headless", key, clientId: query.get("client_id") ? requireClientId(query) : undefined };
  }
  if (form === "redirect") {
    const exit = findParameter(query, "exit") ?? "redirect";
    if (exit !== "redirect") throw invalidArgument({ field: "exit", rule: "must be redirect" });
    return { kind: "redirect", url: requireProgramUrl(findParameter(query, "redirect"), "redirect", origin) };
  }
  const state = findParameter(query, "state");
  if (state !== undefined && (state.length > MAX_STATE || !/^[\x20-\x7e]*$/.test(state))) {
    const rule = `must be at most ${MAX_STATE} characters of ASCII`;
    throw invalidArgument({ field: "state", rule });
  }
  if (hasConsole && query.get("client_id") === CONSOLE_CLIENT_ID) {
    const redirectUri = buildConsoleRedirectUri(origin);
    if (findParameter(query, "redirect_uri") !== redirectUri) {
      throw invalidArgument({ field: "redirect_uri", rule: `must be ${redirectUri} for the console` });
    }
    return { kind: "code", clientId: requireParameter(query, "client_id"), redirectUri, state };
  }
  return {
    kind: "code",
    clientId: requireClientId(query),
    redirectUri: requireProgramUrl(findParameter(query, "redirect_uri"), "redirect_uri", origin),
    state,
  };
}

/**
 * Parses the rest of a login request.
 *
 * @throws ApiError INVALID_ARGUMENT
 */
export function parseLoginRequest(
  query: URLSearchParams,
  to: LoginRequest["to"],
  { origin }: Pick<LoginContext, "origin">,
): LoginRequest {
  const { audiences } = origin;
  const scopes = query.getAll("scope").map((scope) => (to.kind === "redirect" ? unescapeScope(scope) : scope));
  const tokenRequest = parseTokenRequest(query, audiences, scopes);
  parseTokenGrant(tokenRequest, audiences);
  const idToken = to.kind === "code" ? parseIdTokenRequest(query, to.clientId, origin) : undefined;
  const isConsole = isForConsole(to, origin);
  const request: LoginRequest = {
    to,
    asked: tokenRequest,
    refresh: isConsole || isRefreshRequested(query),
    register: query.get("skip_registration") !== "true",
    invite: findParameter(query, "invite"),
    identity: parseIdentity(query, to),
    prompt: isConsole ? parsePrompt(query) : undefined,
  };
  return to.kind === "code" ? { ...request, challenge: parseChallenge(query), idToken } : request;
}

function parsePrompt(query: URLSearchParams): LoginPrompt | undefined {
  const prompt = findParameter(query, "prompt");
  if (prompt === undefined || prompt === "none" || prompt === "login" || prompt === "select_account") return prompt;
  throw invalidArgument({ field: "prompt", rule: "must be none, login or select_account" });
}

// OpenID Connect Core 1.0, section 3.1.2.1: the scope openid asks for an ID token, which repeats the nonce.
function parseIdTokenRequest(
  query: URLSearchParams,
  clientId: string,
  origin: LoginContext["origin"],
): LoginRequest["idToken"] {
  if (!listScopes(query).includes("openid")) return undefined;
  requireForeignAudience(clientId, origin);
  const nonce = findParameter(query, "nonce");
  if (nonce !== undefined && nonce.length > MAX_NONCE) {
    throw invalidArgument({ field: "nonce", rule: `must be at most ${MAX_NONCE} characters` });
  }
  return { nonce };
}

/**
 * Requires a client id that an ID token may have as its audience. Anybody may send any client id, so it must not be an
 * audience for which this service issues tokens of another kind: otherwise their receivers would accept the ID token.
 *
 * @throws ApiError INVALID_ARGUMENT
 */
export function requireForeignAudience(clientId: string, { issuer, audiences }: LoginContext["origin"]): void {
  const reserved = [EVENT_AUDIENCE, issuer, ...audiences].map((audience) => audience.toLowerCase());
  if (!isOwnUrl(clientId.toLowerCase(), reserved)) return;
  const rule = "must not be an audience of this service or of its events";
  throw invalidArgument({ field: "client_id", rule });
}

/** Parses the provider that the request names. */
export function parseNamedProvider(query: URLSearchParams): NamedProvider {
  return { idpId: findParameter(query, "idp_id"), connection: findParameter(query, "connection") };
}

function parseChallenge(query: URLSearchParams): string {
  if (findParameter(query, "response_type") !== "code") {
    throw invalidArgument({ field: "response_type", rule: "must be code" });
  }
  return requireChallenge(findParameter(query, "code_challenge"), findParameter(query, "code_challenge_method"));
}

// Other programs exchange their code or ID token for the identity.
function parseIdentity(query: URLSearchParams, to: LoginRequest["to"]): string | undefined {
  const identity = findParameter(query, "identity");
  if (identity === undefined) return undefined;
  if (to.kind !== "redirect") {
    throw invalidArgument({ field: "identity", rule: "is for logins with redirect alone" });
  }
  if (!isUidp(identity)) throw invalidArgument({ field: "identity", rule: "must be a uid" });
  return identity;
}

// Published clients percent-encode scopes twice.
function unescapeScope(scope: string): string {
  try {
    return decodeURIComponent(scope);
  } catch {
    throw invalidArgument({ field: "scope", rule: "must be percent-encoded text" });
  }
}

/** A subset of RFC 6749, appendix A.1, without spaces, so that a client_id cannot read as a sentence on pages. */
const CLIENT_ID = /^[A-Za-z0-9._~-]{1,128}$/;

/** Scopes of OpenID Connect, which many programs send. The other scopes name groups. */
const OPENID_SCOPES: ReadonlySet<string> = new Set(["openid", "email", "profile", "offline_access"]);

/**
 * Omits parameters without a value, which count as absent (RFC 6749, section 3.1). Every endpoint does this first, so
 * that nothing after it has to tell the two apart.
 */
export function omitEmpty(parameters: URLSearchParams): URLSearchParams {
  return new URLSearchParams([...parameters].filter(([, value]) => value !== ""));
}

/**
 * Finds the value of a parameter; undefined where it is absent or empty.
 *
 * @throws ApiError INVALID_ARGUMENT when it is given more than once (RFC 6749, section 3.1).
 */
export function findParameter(parameters: URLSearchParams, name: string): string | undefined {
  const values = parameters.getAll(name);
  if (values.length > 1) throw invalidArgument({ field: name, rule: "must be given once" });
  return values[0] || undefined;
}

/**
 * Requires the value of a parameter.
 *
 * @throws ApiError INVALID_ARGUMENT
 */
export function requireParameter(parameters: URLSearchParams, name: string): string {
  const value = findParameter(parameters, name);
  if (value === undefined) throw invalidArgument({ field: name, rule: "is required" });
  return value;
}

/**
 * Requires a well-formed `client_id` of a program. The console is none: its codes are redeemed at an endpoint of its own.
 *
 * @throws ApiError INVALID_ARGUMENT
 */
export function requireClientId(parameters: URLSearchParams): string {
  const clientId = requireParameter(parameters, "client_id");
  if (clientId === CONSOLE_CLIENT_ID) {
    throw invalidArgument({ field: "client_id", rule: "must not be that of the console of this service" });
  }
  if (CLIENT_ID.test(clientId)) return clientId;
  const rule = "must be 1 to 128 letters, digits, dots, dashes, underscores and tildes";
  throw invalidArgument({ field: "client_id", rule });
}

/**
 * Parses what a token shall be valid for: `audience` or `resource` (RFC 8693), `cap`, and groups in `scope`, by uid or
 * by the name of their organisation. Each may be repeated.
 *
 * @param audiences of this service; the first is the default
 * @param scopes the values of `scope`
 */
export function parseTokenRequest(
  parameters: URLSearchParams,
  audiences: readonly string[],
  scopes: readonly string[] = parameters.getAll("scope"),
): TokenRequest {
  const given = [...parameters.getAll("audience"), ...parameters.getAll("resource")].filter(Boolean);
  return {
    aud: given.length > 0 ? given : audiences.slice(0, 1),
    cap: parameters.getAll("cap").flatMap(splitWords),
    scopes: scopes.flatMap(splitWords).filter((scope) => !OPENID_SCOPES.has(scope)),
  };
}

/**
 * Whether the request asks for a refresh token: with the scope of OpenID Connect Core 1.0, section 11, or with
 * `create_refresh_token`.
 */
export function isRefreshRequested(parameters: URLSearchParams): boolean {
  return parameters.get("create_refresh_token") === "true" || listScopes(parameters).includes("offline_access");
}

function listScopes(parameters: URLSearchParams): string[] {
  return parameters.getAll("scope").flatMap(splitWords);
}

/** Omits some parameters, for a link or a form that repeats a request. */
export function omitParameters(parameters: URLSearchParams, names: readonly string[]): [string, string][] {
  return [...parameters].filter(([name]) => !names.includes(name));
}

function splitWords(list: string): string[] {
  return list.split(" ").filter(Boolean);
}

// Redirect URIs of programs are loopback addresses with a port (RFC 8252, section 7.3).

const LOOPBACK = /^http:\/\/(127\.0\.0\.1|\[::1\]|localhost):([1-9]\d{0,4})(\/[^?#]*)?(\?[^#]*)?$/;
const MAX_LENGTH = 1024;

/** As {@link requireLoopback}. The page of the console, which may have a loopback address, is no program. */
function requireProgramUrl(text: string | undefined, field: string, origin: LoginContext["origin"]): string {
  const url = requireLoopback(text, field);
  const [withoutQuery] = url.split("?");
  if (withoutQuery !== buildConsoleRedirectUri(origin)) return url;
  throw invalidArgument({ field, rule: "must not be that of the console of this service" });
}

/**
 * Requires that `text` is an http URL of 127.0.0.1, [::1] or localhost with a port. Its parsed form must equal its
 * text, so that browsers read it the same way. A user name and a fragment are not allowed.
 *
 * @param field the name of the parameter
 * @throws ApiError INVALID_ARGUMENT
 */
export function requireLoopback(text: string | undefined, field: string): string {
  if (text !== undefined && isLoopbackUrl(text)) return text;
  const rule = "must be an http URL of 127.0.0.1, [::1] or localhost with a port";
  throw invalidArgument({ field, rule });
}

function isLoopbackUrl(text: string): boolean {
  const match = text.length <= MAX_LENGTH ? LOOPBACK.exec(text) : null;
  if (match === null || !/^[\x21-\x7e]+$/.test(text) || !URL.canParse(text)) return false;
  const [, host, port, path = "/"] = match;
  const url = new URL(text);
  const isSame = url.hostname === host && (url.port || "80") === port && url.pathname === path;
  return isSame && url.protocol === "http:" && url.username === "" && url.password === "" && url.hash === "";
}

/** Normalizes words that a person typed: in small letters, with one space between two words. */
export function normalizeWords(text: string): string {
  return text.slice(0, 64).trim().replace(/\s+/g, " ").toLowerCase();
}

/** Normalizes a code that a person typed: in capitals, without spaces and punctuation. */
export function normalizeCode(text: string): string {
  return text
    .slice(0, 64)
    .replace(/[\s\-_.]/g, "")
    .toUpperCase();
}
