// `POST /oauth/token`: what programs change for API tokens (RFC 6749, section
// 4.1.3 and 6; RFC 8628, section 3.4; RFC 8693). All clients are public: what
// proves a request is the code and its verifier, or the token.
import { Code } from "@connectrpc/connect";
import { ApiError, type FieldViolation, invalidArgument } from "../../kernel/errors.js";
import type { WebAnswer, WebRequest } from "../../kernel/web.js";
import type { Tx } from "../../store/port.js";
import { grantOf, limitOf } from "../sts/token-request.js";
import type { Grant, IssuedToken } from "../tokens.js";
import { grantFor } from "./complete-login.js";
import type { LoginContext } from "./context.js";
import { type Failure, failure } from "./oauth-error.js";
import { provesChallenge } from "./pkce.js";
import { askedOf, requiredClientId, requiredValue, soleValue } from "./request.js";
import { oauthJson, withForm } from "./responses.js";
import type { SignedInFor } from "./state.js";

type Answer = WebAnswer | Failure;

/** A code that was changed is remembered for so long, in milliseconds, in case it comes again. */
const USED_MS = 10 * 60 * 1000;
/** Networks are not even: a poll may come so much before its time, in milliseconds. */
const EARLY_MS = 500;
/** RFC 8628, section 3.5. */
const SLOWER_MS = 5_000;

const DEVICE = "urn:ietf:params:oauth:grant-type:device_code";
const EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange";
const TYPE = "urn:ietf:params:oauth:token-type:";

/** `POST /oauth/token`. */
export function token(context: LoginContext, request: WebRequest): Promise<WebAnswer> {
  return withForm(request, async (form): Promise<Answer> => {
    switch (requiredValue(form, "grant_type")) {
      case "authorization_code":
        return redeemCode(context, form);
      case "refresh_token":
        return renew(context, form);
      case DEVICE:
        return pollDevice(context, form);
      case EXCHANGE:
        return exchange(context, form, request.remoteAddress);
      default:
        return failure("unsupported_grant_type", "grant_type is not one of those in the discovery document");
    }
  });
}

async function redeemCode(context: LoginContext, form: URLSearchParams): Promise<Answer> {
  const { store, tickets, tokens, clock } = context;
  const clientId = requiredClientId(form);
  const redirectUri = requiredValue(form, "redirect_uri");
  const verifier = requiredValue(form, "code_verifier");
  const code = requiredValue(form, "code");
  return store.write(async (tx) => {
    const nowMs = clock();
    const issued = await tickets.get(tx, "code", code, nowMs);
    if (issued?.used) {
      // Somebody else has the code too (RFC 9700, section 2.1.1): nobody keeps what it was changed for.
      if (issued.refreshToken !== undefined) await tokens.revoke(tx, issued.refreshToken);
      return invalidGrant("code");
    }
    if (issued === undefined) return invalidGrant("code");
    const { login, challenge } = issued;
    const isRight =
      issued.clientId === clientId && issued.redirectUri === redirectUri && provesChallenge(verifier, challenge);
    if (!isRight || !(await isGoodStill(tx, login))) {
      await tickets.delete(tx, code);
      return invalidGrant("code");
    }
    const { body, refreshToken } = await tokensFor(tx, context, login, nowMs);
    await tickets.put(tx, "code", code, { used: true, refreshToken }, nowMs + USED_MS);
    return oauthJson(200, body);
  });
}

async function renew({ store, tokens, clock, origin }: LoginContext, form: URLSearchParams): Promise<Answer> {
  const refreshToken = requiredValue(form, "refresh_token");
  const wanted = narrowerGrant(form, origin().audiences);
  const nowMs = clock();
  const renewed = await store.write((tx) => tokens.rotate(tx, refreshToken, wanted, nowMs));
  if (renewed === undefined) return invalidGrant("refresh_token");
  return oauthJson(200, { ...tokenBody(renewed.token, nowMs), refresh_token: renewed.refreshToken });
}

async function pollDevice(context: LoginContext, form: URLSearchParams): Promise<Answer> {
  const { store, tickets, clock } = context;
  const clientId = requiredClientId(form);
  const deviceCode = requiredValue(form, "device_code");
  return store.write(async (tx): Promise<Answer> => {
    const nowMs = clock();
    const device = await tickets.get(tx, "device", deviceCode, nowMs);
    if (device?.asker.clientId !== clientId) return invalidGrant("device_code");
    if (device.expireTimeMs <= nowMs) return failure("expired_token", "the device_code has expired");
    const { decision } = device;
    if (decision === "none") {
      const isEarly = nowMs - device.polledMs < device.intervalMs - EARLY_MS;
      const intervalMs = device.intervalMs + (isEarly ? SLOWER_MS : 0);
      const polled = { ...device, intervalMs, polledMs: nowMs };
      await tickets.put(tx, "device", deviceCode, polled, device.forgetTimeMs);
      return isEarly
        ? failure("slow_down", `wait ${intervalMs / 1000} seconds between two polls`)
        : failure("authorization_pending", "nobody has approved this yet");
    }
    await tickets.delete(tx, deviceCode);
    if (decision === "denied") return failure("access_denied", "access was denied");
    if (!(await isGoodStill(tx, decision.login))) return invalidGrant("device_code");
    const { body } = await tokensFor(tx, context, decision.login, nowMs);
    // Published clients take this one and exchange it.
    return oauthJson(200, { ...body, id_token: decision.idToken });
  });
}

async function exchange(context: LoginContext, form: URLSearchParams, address: string | undefined): Promise<Answer> {
  const { exchanger, origin, clock } = context;
  const subjectToken = requiredValue(form, "subject_token");
  requireType(form, "subject_token_type", ["jwt", "id_token", "access_token"]);
  if (form.has("requested_token_type")) requireType(form, "requested_token_type", ["jwt", "access_token"]);
  if (form.has("actor_token")) {
    throw invalidArgument({ field: "actor_token", description: "actor_token is not supported" });
  }
  const asked = {
    ...askedOf(form, origin().audiences),
    identity: soleValue(form, "identity") ?? "",
    identityProvider: soleValue(form, "identity_provider") ?? "",
  };
  try {
    const issued = await exchanger.exchange(asked, subjectToken, address);
    return oauthJson(200, { ...tokenBody(issued, clock()), issued_token_type: `${TYPE}access_token` });
  } catch (error) {
    // RFC 8693, section 2.2.2, has one code for every token that is not accepted.
    if (error instanceof ApiError && error.code === Code.Unauthenticated) {
      return failure("invalid_request", "subject_token is not valid here");
    }
    if (error instanceof ApiError && error.code === Code.PermissionDenied) {
      return failure("invalid_request", error.message);
    }
    throw error;
  }
}

async function tokensFor(tx: Tx, { tokens, origin }: LoginContext, login: SignedInFor, nowMs: number) {
  const grant = grantFor(login, origin().audiences);
  const { identityUid, refresh } = login;
  const refreshToken = refresh ? await tokens.newRefreshToken(tx, identityUid, grant, nowMs) : undefined;
  const body = tokenBody(tokens.issue(identityUid, grant, nowMs), nowMs);
  return { body: { ...body, refresh_token: refreshToken }, refreshToken };
}

function tokenBody({ token, expiresAtMs }: IssuedToken, nowMs: number) {
  return { access_token: token, token_type: "Bearer", expires_in: Math.floor((expiresAtMs - nowMs) / 1000) };
}

// Between the login and now the person may have been forgotten, or their logins ended.
async function isGoodStill(tx: Tx, { identityUid, atMs }: SignedInFor): Promise<boolean> {
  const identity = await tx.identities.get(identityUid);
  return identity !== undefined && identity.notBefore * 1000 <= atMs;
}

function narrowerGrant(form: URLSearchParams, audiences: readonly string[]): Partial<Grant> {
  const asked = askedOf(form, []);
  if (asked.aud.length > 0) return grantOf(asked, audiences);
  const violations: FieldViolation[] = [];
  const limit = limitOf(asked, violations);
  if (violations.length > 0) throw invalidArgument(...violations);
  return limit === undefined ? {} : { limit };
}

function requireType(form: URLSearchParams, field: string, types: readonly string[]): void {
  const given = requiredValue(form, field);
  if (types.some((type) => given === `${TYPE}${type}`)) return;
  throw invalidArgument({ field, description: `${field} must be ${TYPE} with one of ${types.join(", ")}` });
}

// One text for all causes, so that it is no oracle.
function invalidGrant(what: string): Failure {
  return failure("invalid_grant", `the ${what} is wrong, was used before, has expired, or is not for this request`);
}
