// Requests to the service that are no RPC of a generated client: those of OAuth
// and of the token exchange.
import { Code, type ConnectError } from "@connectrpc/connect";
import { jsonObject } from "./claims.js";
import { failure } from "./failure.js";

/** How long one request may take, in milliseconds. */
const REQUEST_MS = 10_000;

/** How much of the service's own text an error repeats, in characters. */
const MAX_TEXT = 500;

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

/** What was answered with success. */
export type ServiceAnswer = Readonly<Record<string, unknown>>;

/**
 * Sends one request, once: of some it is not known whether they had their effect, and that of a
 * refresh token must not be had twice.
 *
 * @throws ConnectError with the code and the text of the service; UNAVAILABLE or DEADLINE_EXCEEDED when
 * it cannot be reached
 */
export async function askService(request: ServiceRequest): Promise<ServiceAnswer> {
  const { method, api, path, query, form, bearer } = request;
  const signal = AbortSignal.timeout(REQUEST_MS);
  const url = `${api}${path}${query ? `?${query}` : ""}`;
  const headers = { accept: "application/json", ...(bearer !== undefined && { authorization: `Bearer ${bearer}` }) };
  let status: number;
  let text: string;
  try {
    // A redirect would carry credentials to a place nobody named.
    const response = await fetch(url, { method, headers, redirect: "manual", signal, ...(form && { body: form }) });
    status = response.status;
    text = await response.text();
  } catch (cause) {
    if (signal.aborted) throw failure(Code.DeadlineExceeded, `no answer from ${api} within ${REQUEST_MS} ms`, cause);
    throw failure(Code.Unavailable, `${api} cannot be reached`, cause);
  }
  const body = jsonObject(text);
  if (status === 200) return body;
  throw refusal(request, status, body);
}

/** The gRPC code that an HTTP status stands for where nothing else tells one. */
export function codeOfStatus(status: number): Code {
  return codes[status] ?? Code.Unknown;
}

const codes: Readonly<Record<number, Code>> = {
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

// REST answers the JSON of a google.rpc.Status (spec section 7), OAuth that of RFC 6749, section 5.2.
function refusal({ api, bearer, form }: ServiceRequest, status: number, body: ServiceAnswer): ConnectError {
  const known = typeof body.code === "number" && Code[body.code] !== undefined ? body.code : undefined;
  const said = [body.message, body.error_description, body.error].find((text) => typeof text === "string" && text);
  let text = typeof said === "string" ? said : `${api} answered with the status ${status}`;
  for (const secret of [bearer, form?.get("code"), form?.get("code_verifier")]) {
    if (secret) text = text.replaceAll(secret, "[secret]");
  }
  // Of the codes of OAuth this one is no mistake in the request.
  const code = body.error === "invalid_grant" ? Code.Unauthenticated : codeOfStatus(status);
  return failure(known ?? code, text.slice(0, MAX_TEXT));
}
