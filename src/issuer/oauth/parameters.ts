// Parameters of requests.
import { invalidArgument } from "../../kernel/errors.js";
import type { TokenRequest } from "../sts/token-request.js";

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
