// What `GET /oauth` is asked for, in the three forms that clients have.
import { invalidArgument, malformedRequest } from "../../kernel/errors.js";
import { isUidp } from "../../kernel/uidp.js";
import { grantOf, type TokenRequest } from "../sts/token-request.js";
import { requireHeadlessKey } from "./headless.js";
import { requireChallenge } from "./pkce.js";
import type { Destination, LoginRequest, NamedProvider } from "./state.js";

const MAX_STATE = 1024;

/**
 * Where the outcome is to go. Known before the rest is read, since that is where what is wrong with
 * the rest is told.
 *
 * @throws ApiError INVALID_ARGUMENT when it may not go there.
 */
export function destinationOf(query: URLSearchParams): Exclude<Destination, { kind: "device" }> {
  const forms = ["headless_code", "response_type", "redirect"].filter((name) => query.has(name));
  const [form] = forms;
  if (form === undefined || forms.length > 1) {
    throw malformedRequest("this page is opened by programs, with response_type, redirect or headless_code");
  }
  if (form === "headless_code") {
    const key = soleValue(query, "headless_code") ?? "";
    requireHeadlessKey(key);
    return { kind: "headless", key };
  }
  if (form === "redirect") {
    const exit = soleValue(query, "exit") ?? "redirect";
    if (exit !== "redirect") throw invalidArgument({ field: "exit", description: "exit must be redirect" });
    return { kind: "redirect", url: requireLoopback(soleValue(query, "redirect"), "redirect") };
  }
  const state = soleValue(query, "state");
  if (state !== undefined && (state.length > MAX_STATE || !/^[\x20-\x7e]*$/.test(state))) {
    const rule = `state must be at most ${MAX_STATE} characters of ASCII`;
    throw invalidArgument({ field: "state", description: rule });
  }
  return {
    kind: "code",
    clientId: requiredClientId(query),
    redirectUri: requireLoopback(soleValue(query, "redirect_uri"), "redirect_uri"),
    state,
  };
}

/**
 * What is asked for.
 *
 * @param audiences of this service
 * @throws ApiError INVALID_ARGUMENT
 */
export function loginRequestOf(
  query: URLSearchParams,
  to: LoginRequest["to"],
  audiences: readonly string[],
): LoginRequest {
  const scopes = query.getAll("scope").map((scope) => (to.kind === "redirect" ? unescaped(scope) : scope));
  const asked = askedOf(query, audiences, scopes);
  grantOf(asked, audiences);
  const request: LoginRequest = {
    to,
    asked,
    refresh: asksForRefresh(query),
    register: query.get("skip_registration") !== "true",
    invite: soleValue(query, "invite"),
    identity: identityIn(query, to),
  };
  return to.kind === "code" ? { ...request, challenge: challengeIn(query) } : request;
}

/** Which provider is asked for. */
export function namedProviderIn(query: URLSearchParams): NamedProvider {
  return { idpId: soleValue(query, "idp_id"), connection: soleValue(query, "connection") };
}

function challengeIn(query: URLSearchParams): string {
  if (soleValue(query, "response_type") !== "code") {
    throw invalidArgument({ field: "response_type", description: "response_type must be code" });
  }
  return requireChallenge(soleValue(query, "code_challenge"), soleValue(query, "code_challenge_method"));
}

// Whoever gets a code or an ID token exchanges it for the identity; only who gets a token cannot.
function identityIn(query: URLSearchParams, to: LoginRequest["to"]): string | undefined {
  const identity = soleValue(query, "identity");
  if (identity === undefined) return undefined;
  if (to.kind !== "redirect") {
    throw invalidArgument({ field: "identity", description: "identity is for logins with redirect alone" });
  }
  if (!isUidp(identity)) throw invalidArgument({ field: "identity", description: "identity must be a uid" });
  return identity;
}

// Published clients escape scopes once more than others do.
function unescaped(scope: string): string {
  try {
    return decodeURIComponent(scope);
  } catch {
    throw invalidArgument({ field: "scope", description: "scope must be percent-encoded text" });
  }
}

// Parameters of requests.

/** What programs may be called: as in RFC 6749, appendix A.1, but nothing that reads as a sentence. */
const CLIENT_ID = /^[A-Za-z0-9._~-]{1,128}$/;

/** Scopes of OpenID Connect, which many programs ask for; those of Arbor are uids of groups. */
const OPENID_SCOPES: ReadonlySet<string> = new Set(["openid", "email", "profile", "offline_access"]);

/**
 * The value of a parameter; undefined where it is absent or empty.
 *
 * @throws ApiError INVALID_ARGUMENT when it is given more than once (RFC 6749, section 3.1).
 */
export function soleValue(parameters: URLSearchParams, name: string): string | undefined {
  const values = parameters.getAll(name);
  if (values.length > 1) throw invalidArgument({ field: name, description: `${name} must be given once` });
  return values[0] || undefined;
}

/**
 * The value of a parameter that must be given.
 *
 * @throws ApiError INVALID_ARGUMENT
 */
export function requiredValue(parameters: URLSearchParams, name: string): string {
  const value = soleValue(parameters, name);
  if (value === undefined) throw invalidArgument({ field: name, description: `${name} is required` });
  return value;
}

/**
 * The `client_id`.
 *
 * @throws ApiError INVALID_ARGUMENT
 */
export function requiredClientId(parameters: URLSearchParams): string {
  const clientId = requiredValue(parameters, "client_id");
  if (CLIENT_ID.test(clientId)) return clientId;
  const rule = "client_id must be 1 to 128 letters, digits, dots, dashes, underscores and tildes";
  throw invalidArgument({ field: "client_id", description: rule });
}

/**
 * What a token is asked to be good for: `audience` or `resource` (RFC 8693), `cap`, and the uids of
 * groups in `scope`. Each may be given several times.
 *
 * @param audiences of this service; the first is meant where none is given
 * @param scopes the values of `scope`
 */
export function askedOf(
  parameters: URLSearchParams,
  audiences: readonly string[],
  scopes: readonly string[] = parameters.getAll("scope"),
): TokenRequest {
  const given = [...parameters.getAll("audience"), ...parameters.getAll("resource")].filter(Boolean);
  return {
    aud: given.length > 0 ? given : audiences.slice(0, 1),
    cap: parameters.getAll("cap").flatMap(words),
    scopes: scopes.flatMap(words).filter((scope) => !OPENID_SCOPES.has(scope)),
  };
}

/** Whether a refresh token is asked for: by the word of OpenID Connect Core 1.0, section 11, or by ours. */
export function asksForRefresh(parameters: URLSearchParams): boolean {
  const scopes = parameters.getAll("scope").flatMap(words);
  return parameters.get("create_refresh_token") === "true" || scopes.includes("offline_access");
}

/** The parameters without those of some names, for a link or a form that repeats a request. */
export function parametersBut(parameters: URLSearchParams, names: readonly string[]): [string, string][] {
  return [...parameters].filter(([name]) => !names.includes(name));
}

function words(list: string): string[] {
  return list.split(" ").filter(Boolean);
}

// Where a login may lead back to: a program on the same machine that listens on
// a port of its own (RFC 8252, section 7.3), and nowhere else.

const LOOPBACK = /^http:\/\/(127\.0\.0\.1|\[::1\]|localhost):([1-9]\d{0,4})(\/[^?#]*)?(\?[^#]*)?$/;
const MAX_LENGTH = 1024;

/**
 * Requires that `text` is an http URL of 127.0.0.1, [::1] or localhost with a port. It must mean to a
 * browser what it seems to say: what changes when it is parsed is refused, and so are a user name and
 * a fragment.
 *
 * @param field the parameter it came in
 * @throws ApiError INVALID_ARGUMENT
 */
export function requireLoopback(text: string | undefined, field: string): string {
  if (text !== undefined && isLoopbackUrl(text)) return text;
  const rule = "must be an http URL of 127.0.0.1, [::1] or localhost with a port";
  throw invalidArgument({ field, description: `${field} ${rule}` });
}

function isLoopbackUrl(text: string): boolean {
  const match = text.length <= MAX_LENGTH ? LOOPBACK.exec(text) : null;
  if (match === null || !/^[\x21-\x7e]+$/.test(text) || !URL.canParse(text)) return false;
  const [, host, port, path = "/"] = match;
  const url = new URL(text);
  const isSame = url.hostname === host && (url.port || "80") === port && url.pathname === path;
  return isSame && url.protocol === "http:" && url.username === "" && url.password === "" && url.hash === "";
}

/** Normalizes a code that a person typed: capitals, without what people put between groups. */
export function normalizeCode(text: string): string {
  return text
    .slice(0, 64)
    .replace(/[\s\-_.]/g, "")
    .toUpperCase();
}
