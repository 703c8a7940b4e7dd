// The requests that get tokens from the service (grants of OAuth 2.0).
import { ConnectError } from "@connectrpc/connect";
import { exchangedToken, tokenFile } from "../../../client/refreshing-token.js";
import { isBearerToken } from "../../../client/token-source.js";
import { CLI_CLIENT_ID } from "../../../kernel/web.js";
import { Code, CommandError } from "../../errors.js";
import { sendRequest } from "../service.js";
import type { StoredLogin, Workload } from "./credentials-file.js";

/** How a person wants to log in. */
export interface LoginOptions extends TokenLimits {
  /** The uid of an organisation's login provider, or the name of the organisation. */
  readonly provider?: string;
  /** The name of one of the service's own login providers. */
  readonly connection?: string;
  /** The code of an invite to accept. */
  readonly invite?: string;
}

/** The limits of a token; an absent member is no limit. */
export interface TokenLimits {
  /** The uids of groups. */
  readonly scope?: readonly string[];
  /** The names of capabilities. */
  readonly cap?: readonly string[];
}

/** An authorization code and the proof that it belongs to this login. */
export interface AuthorizationCode {
  readonly code: string;
  /** The PKCE verifier (RFC 7636). */
  readonly verifier: string;
  readonly redirectUri: string;
}

/** The ID token of a person, from a login provider. */
export interface IdToken {
  readonly idToken: string;
  /** The uid of the provider, if it is that of an organisation. */
  readonly provider?: string;
}

/** Builds the parameters of the authorization endpoint for the login provider and the invite. */
export function buildLoginParameters({ provider, connection, invite }: LoginOptions): [name: string, value: string][] {
  const all = Object.entries({ idp_id: provider, connection, invite });
  return all.flatMap(([name, value]): [string, string][] => (value === undefined ? [] : [[name, value]]));
}

/**
 * Builds the parameters that limit a token.
 *
 * @param scope the name of the parameter for groups, which differs between endpoints
 */
export function buildLimitParameters(
  { scope: groups = [], cap = [] }: TokenLimits,
  scope: "scope" | "scopes",
): [name: string, value: string][] {
  return [
    ...groups.map((uid): [string, string] => [scope, uid]),
    ...cap.map((name): [string, string] => ["cap", name]),
  ];
}

/** Redeems an authorization code for tokens (RFC 6749, section 4.1.3). */
export async function redeemCode(
  api: string,
  { code, verifier, redirectUri }: AuthorizationCode,
): Promise<StoredLogin> {
  const form = new URLSearchParams({
    grant_type: "authorization_code",
    code,
    code_verifier: verifier,
    redirect_uri: redirectUri,
    client_id: CLI_CLIENT_ID,
  });
  const response = await sendRequest({ method: "POST", api, path: "/oauth/token", form });
  return toLogin(response.access_token, response.refresh_token);
}

/**
 * Exchanges a refresh token for an API token and the next refresh token. It must not be sent again, even when the
 * request fails.
 *
 * @param audience the audience of the API token
 */
export async function renewLogin(api: string, refreshToken: string, audience: string): Promise<StoredLogin> {
  const path = "/sts/exchange_refresh_token";
  const query = new URLSearchParams({ aud: audience });
  const response = await sendRequest({ method: "POST", api, path, query, bearer: refreshToken });
  return toLogin(findToken(response.token), findToken(response.refreshToken));
}

/** Exchanges the ID token of a login provider for an API token with the requested limits. */
export async function exchangeIdToken(
  api: string,
  { idToken, provider }: IdToken,
  limits: TokenLimits,
): Promise<StoredLogin> {
  const query = new URLSearchParams([["aud", api], ...buildLimitParameters(limits, "scopes")]);
  if (provider !== undefined) query.set("identity_provider", provider);
  const response = await sendRequest({ method: "GET", api, path: "/sts/exchange", query, bearer: idToken });
  return toLogin(response.token, response.refreshToken);
}

/**
 * Exchanges the OIDC token in a file for an API token of an identity (docs/api-rules.md#token-exchange).
 *
 * @param audience the audience of the API token
 */
export async function exchangeWorkloadToken(api: string, workload: Workload, audience: string): Promise<string> {
  const { identity, tokenFile: path } = workload;
  try {
    return await exchangedToken({ issuer: api, identity, audience, upstream: tokenFile(path).token }).token();
  } catch (error) {
    if (!(error instanceof ConnectError)) throw error;
    throw new CommandError(error.code, error.rawMessage, error);
  }
}

function toLogin(token: unknown, refreshToken: unknown): StoredLogin {
  if (!isBearerToken(token)) throw new CommandError(Code.Internal, "the service responded without a token");
  return { token, ...(isBearerToken(refreshToken) && { refreshToken }) };
}

function findToken(value: unknown): unknown {
  return typeof value === "object" && value !== null && "token" in value ? value.token : undefined;
}
