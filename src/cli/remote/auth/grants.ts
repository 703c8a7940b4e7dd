// The requests that get tokens from the service, one function for each way to log in and to renew a login:
//
//   redeemCode             `arbor auth login` with a browser on this machine, which returned an authorization code
//   exchangeIdToken        `arbor auth login --headless`, whose result is the ID token of a login provider
//   exchangeWorkloadToken  `arbor auth login --identity`, with the OIDC token in a file
//   renewLogin             a login of a person later, with its refresh token; a workload exchanges the token of its file again
//
// A login has two API tokens where it can: the second is for docker, and limited to the registry (registry-limit.ts).
import { readFile } from "node:fs/promises";
import { ConnectError } from "@connectrpc/connect";
import { exchangedToken, tokenFile } from "../../../client/refreshing-token.js";
import { isBearerToken } from "../../../client/token-source.js";
import { describeReadError } from "../../../kernel/files.js";
import { CLI_CLIENT_ID } from "../../../kernel/web.js";
import { Code, CommandError } from "../../errors.js";
import { findConnectionFailure } from "../connection-failure.js";
import { sendRequest } from "../service.js";
import type { StoredLogin, Workload } from "./credentials-file.js";
import { REGISTRY_CAPABILITIES } from "./registry-limit.js";

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
  readonly cap?: readonly string[] | undefined;
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
  for (const name of REGISTRY_CAPABILITIES) form.append("limited_cap", name);
  const response = await sendRequest({ method: "POST", api, path: "/oauth/token", form });
  return toLogin(response.access_token, response.refresh_token, response.limited_token);
}

/**
 * Exchanges a refresh token for an API token and the next refresh token. It must not be sent again, even when the
 * request fails.
 *
 * @param audience the audience of the API token
 * @param cap the capabilities to which the API token is limited
 */
export async function renewLogin(
  api: string,
  refreshToken: string,
  audience: string,
  cap?: readonly string[],
): Promise<StoredLogin> {
  const path = "/sts/exchange_refresh_token";
  const query = new URLSearchParams([["aud", audience], ...buildLimitParameters({ cap }, "scopes")]);
  const response = await sendRequest({ method: "POST", api, path, query, bearer: refreshToken });
  return toLogin(findToken(response.token), findToken(response.refreshToken));
}

/** Ends the login of a refresh token at the service (RFC 7009). */
export async function revokeLogin(api: string, refreshToken: string): Promise<void> {
  const form = new URLSearchParams({ token: refreshToken, token_type_hint: "refresh_token", client_id: CLI_CLIENT_ID });
  await sendRequest({ method: "POST", api, path: "/oauth/revoke", form });
}

/**
 * Exchanges the ID token of a login provider for an API token with the requested limits, and for another that is limited
 * to the registry as well.
 */
export async function exchangeIdToken(
  api: string,
  { idToken, provider }: IdToken,
  limits: TokenLimits,
): Promise<StoredLogin> {
  const exchange = (requested: TokenLimits) => {
    const query = new URLSearchParams([["aud", api], ...buildLimitParameters(requested, "scopes")]);
    if (provider !== undefined) query.set("identity_provider", provider);
    return sendRequest({ method: "GET", api, path: "/sts/exchange", query, bearer: idToken });
  };
  const { token, refreshToken } = await exchange(limits);
  const cap = REGISTRY_CAPABILITIES.filter((name) => limits.cap?.includes(name) ?? true);
  // A login without any capability of the registry has nothing for docker.
  const registry = cap.length === 0 ? undefined : await exchange({ ...limits, cap });
  return toLogin(token, refreshToken, registry?.token);
}

/**
 * Exchanges the OIDC token in a file for an API token of an identity (docs/api-rules.md#token-exchange).
 *
 * @param audience the audience of the API token
 * @param cap the capabilities to which it is limited
 */
export async function exchangeWorkloadToken(
  api: string,
  workload: Workload,
  audience: string,
  cap?: readonly string[],
): Promise<string> {
  const { identity, tokenFile: path } = workload;
  try {
    const upstream = tokenFile(path).token;
    return await exchangedToken({ issuer: api, identity, audience, ...(cap && { cap }), upstream }).token();
  } catch (error) {
    if (!(error instanceof ConnectError)) throw error;
    const failure = findConnectionFailure(error, api);
    if (failure !== undefined) throw failure;
    const { code, rawMessage } = error;
    const isRefused = code === Code.Unauthenticated || code === Code.PermissionDenied;
    const remedy = isRefused ? `\n  ${await describeUpstream(path, api)}` : "";
    throw new CommandError(code, `${rawMessage}${remedy}`, error);
  }
}

// Read once more, because the client does not tell which token it sent.
async function describeUpstream(path: string, api: string): Promise<string> {
  const { describeToken } = await import("./describe-token.js");
  try {
    const token = await readFile(path, "utf8");
    return describeToken(token, { audience: api, isUpstream: true }, Date.now())
      .map((fault) => `${path} ${fault}`)
      .join("\n  ");
  } catch (error) {
    return describeReadError(path, error);
  }
}

function toLogin(token: unknown, refreshToken: unknown, registryToken?: unknown): StoredLogin {
  if (!isBearerToken(token)) throw new CommandError(Code.Internal, "the service responded without a token");
  return {
    token,
    ...(isBearerToken(refreshToken) && { refreshToken }),
    ...(isBearerToken(registryToken) && { registryToken }),
  };
}

function findToken(value: unknown): unknown {
  return typeof value === "object" && value !== null && "token" in value ? value.token : undefined;
}
