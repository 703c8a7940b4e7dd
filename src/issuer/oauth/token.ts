// `POST /oauth/token`: the grants that programs exchange for API tokens (RFC 6749, sections 4.1.3 and 6; RFC 8628,
// section 3.4; RFC 8693). `POST /oauth/revoke`: the end of a login (RFC 7009). All clients are public: the code with its
// verifier, or the token, proves the request.
import { Code } from "@connectrpc/connect";
import { ApiError, type FieldViolation, invalidArgument, rejectReasonOf } from "../../kernel/errors.js";
import { addressKey } from "../../kernel/ip-address.js";
import type { TokenLimit } from "../../kernel/principal.js";
import type { WebRequest, WebResponse } from "../../kernel/web.js";
import type { Tx } from "../../store/transaction.js";
import { findAudienceHint } from "../sts/audience.js";
import { parseTokenGrant, parseTokenLimit, type RequestedGrant } from "../sts/token-request.js";
import { type IssuedToken, isLoginValid, narrowGrant, type UnsignedToken } from "../tokens.js";
import { buildTokenGrant } from "./complete-login.js";
import type { LoginContext } from "./context.js";
import { type OAuthError, oauthError } from "./oauth-error.js";
import { matchesChallenge } from "./pkce.js";
import { findParameter, parseTokenRequest, requireClientId, requireParameter } from "./request.js";
import { type AfterCommit, buildJsonResponse, handleForm, writeAndRespond } from "./responses.js";
import type { IssuedCode, SignedInFor } from "./state.js";

type TokenResult = WebResponse | OAuthError;

/** How long a redeemed code is kept to detect its reuse, in milliseconds. */
export const USED_CODE_RETENTION_MS = 10 * 60 * 1000;
/** How much earlier than the interval a poll may arrive, in milliseconds, because network delays vary. */
const POLL_TOLERANCE_MS = 500;
/** What slow_down adds to the polling interval, in milliseconds (RFC 8628, section 3.5). */
const SLOW_DOWN_MS = 5_000;

const DEVICE = "urn:ietf:params:oauth:grant-type:device_code";
const EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange";
const TYPE = "urn:ietf:params:oauth:token-type:";

/** `POST /oauth/token`. */
export function handleToken(context: LoginContext, request: WebRequest): Promise<WebResponse> {
  return handleForm(request, async (form): Promise<TokenResult> => {
    switch (requireParameter(form, "grant_type")) {
      case "authorization_code":
        return redeemCode(context, form);
      case "refresh_token":
        return refreshTokens(context, form, request);
      case DEVICE:
        return pollDevice(context, form);
      case EXCHANGE:
        return exchange(context, form, request);
      default:
        return oauthError("unsupported_grant_type", "grant_type is not one of those in the discovery document");
    }
  });
}

/**
 * `POST /oauth/revoke`: ends the login of a refresh token, for whoever has it. The response is the same for an unknown
 * token (RFC 7009, section 2.2).
 */
export function handleRevocation({ store, tokens }: LoginContext, request: WebRequest): Promise<WebResponse> {
  return handleForm(request, async (form): Promise<TokenResult> => {
    const token = requireParameter(form, "token");
    // Refresh tokens are base64. An API token is valid until it expires, wherever it is verified.
    if (token.includes(".")) return oauthError("unsupported_token_type", "only a refresh token can be revoked");
    const isKnown = (await store.read((tx) => tokens.findIdentityUid(tx, token))) !== undefined;
    if (isKnown) await store.write((tx) => tokens.revoke(tx, token));
    return buildJsonResponse(200, {});
  });
}

async function redeemCode(context: LoginContext, form: URLSearchParams): Promise<TokenResult> {
  const { store, tickets, tokens, idTokens, clock } = context;
  const clientId = requireClientId(form);
  const redirectUri = requireParameter(form, "redirect_uri");
  const verifier = requireParameter(form, "code_verifier");
  const code = requireParameter(form, "code");
  const limit = parseLimitedToken(form);
  return writeAndRespond(store, async (tx): Promise<AfterCommit<TokenResult>> => {
    const nowMs = clock();
    const issued = await tickets.find(tx, "code", code, nowMs);
    if (issued?.used) {
      await endLoginOfUsedCode(tx, context, issued);
      return invalidGrant("code");
    }
    if (issued === undefined) return invalidGrant("code");
    const { login, challenge, idToken } = issued;
    const isValid =
      issued.clientId === clientId && issued.redirectUri === redirectUri && matchesChallenge(verifier, challenge);
    if (!isValid || !(await isLoginValid(tx, login.identityUid, login))) {
      await tickets.delete(tx, code);
      return invalidGrant("code");
    }
    const { token, refreshToken, grant } = await issueTokens(tx, context, login, nowMs);
    const limited = limit && (await tokens.issue(tx, login.identityUid, narrowGrant(grant, { limit }), nowMs));
    const { identityUid, atMs, revokeTimeMs } = login;
    const client = { clientId, nonce: idToken?.nonce };
    const known = { identityUid, grant, atMs, revokeTimeMs };
    const signIdToken = idToken && (await idTokens.prepare(tx, client, known, nowMs));
    await tickets.put(tx, "code", code, { used: true, refreshToken }, nowMs + USED_CODE_RETENTION_MS);
    return async () => {
      const limitedToken = limited && (await tokens.sign(limited)).token;
      const body = { ...(await buildTokenBody(context, token, nowMs, refreshToken)), limited_token: limitedToken };
      return buildJsonResponse(200, { ...body, id_token: await signIdToken?.() });
    };
  });
}

/** Ends the login of a code that came again: it was stolen (RFC 9700, section 2.1.1). */
export async function endLoginOfUsedCode(
  tx: Tx,
  { tokens }: Pick<LoginContext, "tokens">,
  { refreshToken, session }: Extract<IssuedCode, { used: true }>,
): Promise<void> {
  if (refreshToken !== undefined) await tokens.revoke(tx, refreshToken);
  if (session !== undefined) await tx.refreshTokens.deleteFamily(session.id);
}

// A program that hands a token on, such as to docker, asks for a second one with fewer rights. Logins through an
// organisation's provider have no refresh token that could be exchanged for it later.
function parseLimitedToken(form: URLSearchParams): TokenLimit | undefined {
  const violations: FieldViolation[] = [];
  const limit = parseTokenLimit({ cap: form.getAll("limited_cap"), scopes: [] }, violations);
  if (violations.length > 0) {
    const rule = "must name capabilities that exist, such as groups.list";
    throw invalidArgument({ field: "limited_cap", rule });
  }
  return limit?.cap === undefined ? undefined : { cap: limit.cap };
}

async function refreshTokens(
  context: LoginContext,
  form: URLSearchParams,
  { remoteAddress }: WebRequest,
): Promise<TokenResult> {
  const { store, tokens, clock, origin } = context;
  const refreshToken = requireParameter(form, "refresh_token");
  const requested = parseNarrowedGrant(form, origin.audiences);
  const nowMs = clock();
  const sent = { client: addressKey(remoteAddress), nowMs };
  const refreshed = await store.write((tx) => tokens.rotate(tx, refreshToken, requested, sent));
  if (refreshed === undefined) return invalidGrant("refresh_token");
  return buildJsonResponse(200, await buildTokenBody(context, refreshed.token, nowMs, refreshed.refreshToken));
}

async function pollDevice(context: LoginContext, form: URLSearchParams): Promise<TokenResult> {
  const { store, tickets, idTokens, clock } = context;
  const clientId = requireClientId(form);
  const deviceCode = requireParameter(form, "device_code");
  return writeAndRespond(store, async (tx): Promise<AfterCommit<TokenResult>> => {
    const nowMs = clock();
    const device = await tickets.find(tx, "device", deviceCode, nowMs);
    if (device?.asker.clientId !== clientId) return invalidGrant("device_code");
    if (device.expireTimeMs <= nowMs) return oauthError("expired_token", "the device_code has expired");
    const { decision } = device;
    if (decision === "none") {
      const isEarly = nowMs - device.polledMs < device.intervalMs - POLL_TOLERANCE_MS;
      const intervalMs = device.intervalMs + (isEarly ? SLOW_DOWN_MS : 0);
      const waiting = { ...device, intervalMs, polledMs: nowMs };
      await tickets.put(tx, "device", deviceCode, waiting, device.forgetTimeMs);
      return isEarly
        ? oauthError("slow_down", `wait ${intervalMs / 1000} seconds between two polls`)
        : oauthError("authorization_pending", "nobody has approved this yet");
    }
    await tickets.delete(tx, deviceCode);
    if (decision === "denied") return oauthError("access_denied", "access was denied");
    const { login, providerUid } = decision;
    if (!(await isLoginValid(tx, login.identityUid, login))) return invalidGrant("device_code");
    const { token, refreshToken, grant } = await issueTokens(tx, context, login, nowMs);
    const { identityUid, atMs, revokeTimeMs } = login;
    const known = { identityUid, grant, providerUid, atMs, revokeTimeMs };
    const signIdToken = await idTokens.create(tx, clientId, known, nowMs);
    return async () => {
      const body = await buildTokenBody(context, token, nowMs, refreshToken);
      return buildJsonResponse(200, { ...body, id_token: await signIdToken() });
    };
  });
}

async function exchange(
  context: LoginContext,
  form: URLSearchParams,
  { remoteAddress, trace, record }: WebRequest,
): Promise<TokenResult> {
  const { exchanger, origin, clock } = context;
  const subjectToken = requireParameter(form, "subject_token");
  requireType(form, "subject_token_type", ["jwt", "id_token", "access_token"]);
  if (form.has("requested_token_type")) requireType(form, "requested_token_type", ["jwt", "access_token"]);
  if (form.has("actor_token")) {
    throw invalidArgument({ field: "actor_token", rule: "is not supported" });
  }
  const exchangeRequest = {
    ...parseTokenRequest(form, origin.audiences),
    identity: findParameter(form, "identity") ?? "",
    identityProvider: findParameter(form, "identity_provider") ?? "",
    trace,
    record,
  };
  try {
    const issued = await exchanger.exchange(exchangeRequest, subjectToken, remoteAddress);
    return buildJsonResponse(200, { ...buildTokenFields(issued, clock()), issued_token_type: `${TYPE}access_token` });
  } catch (error) {
    // RFC 8693, section 2.2.2, has one error code for every token that is not accepted.
    if (error instanceof ApiError && error.code === Code.Unauthenticated) {
      const description = `subject_token is not valid here${findAudienceHint(error)}`;
      return { ...oauthError("invalid_request", description), rejection: rejectReasonOf(error) };
    }
    if (error instanceof ApiError && error.code === Code.PermissionDenied) {
      return { ...oauthError("invalid_request", error.message), rejection: rejectReasonOf(error) };
    }
    throw error;
  }
}

async function issueTokens(tx: Tx, { tokens, origin }: LoginContext, login: SignedInFor, nowMs: number) {
  const grant = await buildTokenGrant(tx, login, origin.audiences);
  const { identityUid, refresh } = login;
  const refreshToken = refresh ? await tokens.createRefreshToken(tx, identityUid, grant, nowMs) : undefined;
  return { token: await tokens.issue(tx, identityUid, grant, nowMs), refreshToken, grant };
}

async function buildTokenBody(
  { tokens }: Pick<LoginContext, "tokens">,
  token: UnsignedToken,
  nowMs: number,
  refreshToken: string | undefined,
) {
  return { ...buildTokenFields(await tokens.sign(token), nowMs), refresh_token: refreshToken };
}

function buildTokenFields({ token, expiresAtMs }: IssuedToken, nowMs: number) {
  return { access_token: token, token_type: "Bearer", expires_in: Math.floor((expiresAtMs - nowMs) / 1000) };
}

function parseNarrowedGrant(form: URLSearchParams, audiences: readonly string[]): Partial<RequestedGrant> {
  const tokenRequest = parseTokenRequest(form, []);
  if (tokenRequest.aud.length > 0) return parseTokenGrant(tokenRequest, audiences);
  const violations: FieldViolation[] = [];
  const limit = parseTokenLimit(tokenRequest, violations);
  if (violations.length > 0) throw invalidArgument(...violations);
  return limit === undefined ? {} : { limit };
}

function requireType(form: URLSearchParams, field: string, types: readonly string[]): void {
  const given = requireParameter(form, field);
  if (types.some((type) => given === `${TYPE}${type}`)) return;
  throw invalidArgument({ field, rule: `must be ${TYPE} with one of ${types.join(", ")}` });
}

// One text for all causes, so that callers cannot tell them apart.
function invalidGrant(what: string): OAuthError {
  const description = `the ${what} is wrong, was used before, has expired, or is not for this request`;
  return { ...oauthError("invalid_grant", description), rejection: "credential" };
}
