// What `GET /oauth` is asked for, in the three forms that clients have.
import { invalidArgument, malformedRequest } from "../../kernel/errors.js";
import { isUidp } from "../../kernel/uidp.js";
import { grantOf } from "../sts/token-request.js";
import { requireHeadlessKey } from "./headless.js";
import { requireLoopback } from "./loopback.js";
import { askedOf, asksForRefresh, requiredClientId, soleValue } from "./parameters.js";
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
