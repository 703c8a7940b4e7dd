// The address of the service, and the requests to it that are no RPC: those of OAuth and of the token exchange.
import { assertMayCarryToken, serviceUrl } from "../../client/token-source.js";
import { Code, CommandError, invalidFlag } from "../errors.js";

/** The address of a service that was started with defaults. */
const DEFAULT_API = "http://127.0.0.1:8080";

/** How long one request may take, in milliseconds. */
const REQUEST_MS = 10_000;

/** How much of the service's own text an error repeats, in characters. */
const MAX_TEXT = 500;

/** The flag for the address of the service. */
export interface ApiFlags {
  /** `--api`, which wins over `ARBOR_API`. */
  readonly api?: string;
}

/**
 * The address of the service as the credentials file spells it.
 *
 * @throws CommandError INVALID_ARGUMENT for an invalid address, or one to which no credentials may be sent
 */
export function resolveApi(flags: ApiFlags): string {
  const { name, value } = apiSetting(flags);
  return asFlagError(name, () => normalizeApi(value, name));
}

/** The address of the service as it was given, and the name of the flag or variable that gave it. */
export function apiSetting({ api }: ApiFlags): { readonly name: string; readonly value: string } {
  return api === undefined
    ? { name: "ARBOR_API", value: process.env.ARBOR_API || DEFAULT_API }
    : { name: "--api", value: api };
}

/**
 * What `work` returns. The client throws a TypeError for a wrong argument; here the argument is a flag.
 *
 * @throws CommandError INVALID_ARGUMENT in place of a TypeError
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
 * The one spelling of a service's address: its origin, and the path before its methods if it has one.
 *
 * @param name the name of the address in the text of the error
 * @throws TypeError for an invalid address, or one to which no credentials may be sent
 */
export function normalizeApi(value: string, name: string): string {
  const url = serviceUrl(value, name);
  assertMayCarryToken(url, name);
  return url.origin + url.pathname.replace(/\/+$/, "");
}

/** A request. */
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

/** The members of a successful answer. */
export type ServiceAnswer = Readonly<Record<string, unknown>>;

/**
 * Sends one request, once. A request that failed may have had its effect, and a refresh token must not be used twice.
 *
 * @throws CommandError with the code and the text of the service; UNAVAILABLE or DEADLINE_EXCEEDED when
 * it cannot be reached
 */
export async function sendRequest(request: ServiceRequest): Promise<ServiceAnswer> {
  const { method, api, path, query, form, bearer } = request;
  const signal = AbortSignal.timeout(REQUEST_MS);
  const url = `${api}${path}${query ? `?${query}` : ""}`;
  const headers = { accept: "application/json", ...(bearer !== undefined && { authorization: `Bearer ${bearer}` }) };
  let status: number;
  let text: string;
  try {
    // A redirect would carry the credentials to an address that the user did not name.
    const response = await fetch(url, { method, headers, redirect: "manual", signal, ...(form && { body: form }) });
    status = response.status;
    text = await response.text();
  } catch (cause) {
    if (signal.aborted) {
      throw new CommandError(Code.DeadlineExceeded, `no answer from ${api} within ${REQUEST_MS} ms`, cause);
    }
    throw new CommandError(Code.Unavailable, `${api} cannot be reached`, cause);
  }
  const body = parseJsonObject(text);
  if (status === 200) return body;
  throw errorFromAnswer(request, status, body);
}

/** The issuer of the service's tokens; undefined when its discovery document names none. */
export async function fetchIssuer(api: string): Promise<string | undefined> {
  const { issuer } = await sendRequest({ method: "GET", api, path: "/.well-known/openid-configuration" });
  return typeof issuer === "string" ? issuer : undefined;
}

/** The gRPC code for an HTTP status where the answer has no better one. */
export function codeFromStatus(status: number): CommandError["code"] {
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

// REST answers the JSON of a google.rpc.Status, OAuth that of RFC 6749, section 5.2.
function errorFromAnswer({ api, bearer, form }: ServiceRequest, status: number, body: ServiceAnswer): CommandError {
  const message = [body.message, body.error_description, body.error].find((text) => typeof text === "string" && text);
  let text = typeof message === "string" ? message : `${api} answered with the status ${status}`;
  for (const secret of [bearer, form?.get("code"), form?.get("code_verifier")]) {
    if (secret) text = text.replaceAll(secret, "[secret]");
  }
  // OAuth answers 400 to a grant that has expired, which is no mistake in the request.
  const code = body.error === "invalid_grant" ? Code.Unauthenticated : codeFromStatus(status);
  return new CommandError(isStatusCode(body.code) ? body.code : code, text.slice(0, MAX_TEXT));
}

function isStatusCode(value: unknown): value is CommandError["code"] {
  return Number.isInteger(value) && (value as number) >= 1 && (value as number) <= 16;
}

/** The members of a JSON object; none for any other text. The error of a parser would repeat the text. */
export function parseJsonObject(text: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value) ? { ...value } : {};
  } catch {
    return {};
  }
}
