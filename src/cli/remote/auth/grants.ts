// The ways to get tokens from the service, and what it answers to each.
import { Code } from "@connectrpc/connect";
import { exchangedToken } from "../../../client/exchanged-token.js";
import { tokenFile } from "../../../client/token-file.js";
import { isBearerToken } from "../../../client/token-source.js";
import type { Login, Workload } from "./credentials-file.js";
import { failure } from "./failure.js";
import { limitParameters, type TokenLimits } from "./login-request.js";
import { askService } from "./service.js";

/** What the service knows this program as. */
export const CLIENT_ID = "arbor-cli";

/** What the browser came back with, and what proves that it was sent by us. */
export interface AuthorizationCode {
  readonly code: string;
  /** The PKCE verifier (RFC 7636). */
  readonly verifier: string;
  readonly redirectUri: string;
}

/** What a login provider says of a person. */
export interface IdToken {
  readonly idToken: string;
  /** The uid of the provider, where it is an organisation's own. */
  readonly provider?: string;
}

/** Changes an authorization code for tokens (RFC 6749, section 4.1.3). */
export async function redeemCode(api: string, { code, verifier, redirectUri }: AuthorizationCode): Promise<Login> {
  const form = new URLSearchParams({
    grant_type: "authorization_code",
    code,
    code_verifier: verifier,
    redirect_uri: redirectUri,
    client_id: CLIENT_ID,
  });
  const answer = await askService({ method: "POST", api, path: "/oauth/token", form });
  return loginOf(answer.access_token, answer.refresh_token);
}

/**
 * Changes a refresh token for an API token and the next refresh token. It must not be sent again,
 * whatever comes of it.
 *
 * @param audience what the API token is for
 */
export async function renewLogin(api: string, refreshToken: string, audience: string): Promise<Login> {
  const path = "/sts/exchange_refresh_token";
  const query = new URLSearchParams({ aud: audience });
  const answer = await askService({ method: "POST", api, path, query, bearer: refreshToken });
  return loginOf(tokenIn(answer.token), tokenIn(answer.refreshToken));
}

/** Changes the ID token of a login provider for an API token, with the limits that were asked for. */
export async function exchangeIdToken(
  api: string,
  { idToken, provider }: IdToken,
  limits: TokenLimits,
): Promise<Login> {
  const query = new URLSearchParams([["aud", api], ...limitParameters(limits, "scopes")]);
  if (provider !== undefined) query.set("identity_provider", provider);
  const answer = await askService({ method: "GET", api, path: "/sts/exchange", query, bearer: idToken });
  return loginOf(answer.token, answer.refreshToken);
}

/**
 * An API token for an identity that is assumed with the OIDC token in a file (spec section 5, item 4).
 *
 * @param audience what the API token is for
 */
export async function workloadToken(api: string, workload: Workload, audience: string): Promise<string> {
  const { identity, tokenFile: path } = workload;
  return exchangedToken({ issuer: api, identity, audience, upstream: tokenFile(path).token }).token();
}

function loginOf(token: unknown, refreshToken: unknown): Login {
  if (!isBearerToken(token)) throw failure(Code.Internal, "the service answered without a token");
  return { token, ...(isBearerToken(refreshToken) && { refreshToken }) };
}

function tokenIn(value: unknown): unknown {
  return typeof value === "object" && value !== null && "token" in value ? value.token : undefined;
}
