// The address of the service, and requests to its endpoints of OAuth and of the token exchange.
import { assertMayCarryToken, serviceUrl } from "../../client/token-source.js";
import { Code, CommandError, invalidFlag } from "../errors.js";
import { describeLostConnection, describeTimeout, findConnectionFailure } from "./connection-failure.js";

/** The address of a service with default settings. */
const DEFAULT_API = "http://127.0.0.1:8080";

/** How long one request may take, in milliseconds. */
const REQUEST_MS = 10_000;

/** How much of the service's error message is repeated, in characters. */
const MAX_TEXT = 500;

/** The flag for the address of the service. */
export interface ApiFlags {
  /** `--api`, which takes precedence over `ARBOR_API`. */
  readonly api?: string;
}

/**
 * Resolves the address of the service, as normalized in the credentials file.
 *
 * @throws CommandError INVALID_ARGUMENT for an invalid address, or one to which no credentials may be sent
 */
export function resolveApi(flags: ApiFlags): string {
  const { name, value } = findApiSetting(flags);
  return asFlagError(name, () => normalizeApi(value, name));
}

/** Finds the address of the service as given, and the name of its flag or variable. */
export function findApiSetting({ api }: ApiFlags): { readonly name: string; readonly value: string } {
  return api === undefined
    ? { name: "ARBOR_API", value: process.env.ARBOR_API || DEFAULT_API }
    : { name: "--api", value: api };
}

/**
 * Returns what `work` returns. The client throws a TypeError for a wrong argument, which here is a flag.
 *
 * @throws CommandError INVALID_ARGUMENT instead of a TypeError
 */
export function asFlagError<T>(flag: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (error instanceof TypeError) throw invalidFlag(flag, error.message);
    throw error;
  }
}

/**
 * Normalizes the address of a service to its origin, and the path before its methods if it has one.
 *
 * @param name the name of the address in the error
 * @throws TypeError for an invalid address, or one to which no credentials may be sent
 */
export function normalizeApi(value: string, name: string): string {
  const url = serviceUrl(value, name);
  assertMayCarryToken(url, name);
  return url.origin + url.pathname.replace(/\/+$/, "");
}

export interface ServiceRequest {
  readonly method: "GET" | "POST";
  /** The address of the service. */
  readonly api: string;
  readonly path: string;
  readonly query?: URLSearchParams;
  readonly form?: URLSearchParams;
  /** The bearer token to send. */
  readonly bearer?: string;
}

/** The members of a successful response. */
export type ServiceResponse = Readonly<Record<string, unknown>>;

/**
 * Sends a request without retries: a failed request may have been handled, and a refresh token must not be used twice.
 *
 * @throws CommandError with the code and the text of the service; UNAVAILABLE or DEADLINE_EXCEEDED when
 * it cannot be reached
 */
export async function sendRequest(request: ServiceRequest): Promise<ServiceResponse> {
  const { method, api, path, query, form, bearer } = request;
  const signal = AbortSignal.timeout(REQUEST_MS);
  const url = `${api}${path}${query ? `?${query}` : ""}`;
  const headers = { accept: "application/json", ...(bearer !== undefined && { authorization: `Bearer ${bearer}` }) };
  let status: number;
  let text: string;
  try {
    // A redirect would send the credentials to another address than that of the user.
    const response = await fetch(url, { method, headers, redirect: "manual", signal, ...(form && { body: form }) });
    status = response.status;
    text = await response.text();
  } catch (cause) {
    if (signal.aborted) throw describeTimeout(api, cause, REQUEST_MS);
    throw findConnectionFailure(cause, api) ?? describeLostConnection(api, cause);
  }
  const body = parseJsonObject(text);
  if (status === 200) return body;
  throw buildResponseError(request, status, body);
}

/** Fetches the discovery document of the service. */
export function fetchDiscovery(api: string): Promise<ServiceResponse> {
  return sendRequest({ method: "GET", api, path: "/.well-known/openid-configuration" });
}

/** Fetches the issuer of the service's tokens; undefined when its discovery document has none. */
export async function fetchIssuer(api: string): Promise<string | undefined> {
  const { issuer } = await fetchDiscovery(api);
  return typeof issuer === "string" ? issuer : undefined;
}

/** Maps an HTTP status to a gRPC code, for responses without one. */
export function toCode(status: number): CommandError["code"] {
  return codesByStatus[status] ?? Code.Unknown;
}

const codesByStatus: Readonly<Record<number, CommandError["code"]>> = {
  400: Code.InvalidArgument,
  401: Code.Unauthenticated,
  403: Code.PermissionDenied,
  404: Code.NotFound,
  409: Code.Aborted,
  429: Code.ResourceExhausted,
  502: Code.Unavailable,
  503: Code.Unavailable,
  504: Code.Unavailable,
};

// Errors of REST are google.rpc.Status in JSON, those of OAuth follow RFC 6749, section 5.2.
function buildResponseError(
  { api, bearer, form }: ServiceRequest,
  status: number,
  body: ServiceResponse,
): CommandError {
  const message = [body.message, body.error_description, body.error].find((text) => typeof text === "string" && text);
  let text = typeof message === "string" ? message : `${api} responded with the status ${status}`;
  for (const secret of [bearer, form?.get("code"), form?.get("code_verifier"), form?.get("token")]) {
    if (secret) text = text.replaceAll(secret, "[secret]");
  }
  // OAuth answers 400 for an expired grant, although the request is correct.
  const code = body.error === "invalid_grant" ? Code.Unauthenticated : toCode(status);
  return new CommandError(isStatusCode(body.code) ? body.code : code, text.slice(0, MAX_TEXT));
}

function isStatusCode(value: unknown): value is CommandError["code"] {
  return Number.isInteger(value) && (value as number) >= 1 && (value as number) <= 16;
}

/** Parses a JSON object; empty for any other text. The error of the parser would contain the text. */
export function parseJsonObject(text: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value) ? { ...value } : {};
  } catch {
    return {};
  }
}
