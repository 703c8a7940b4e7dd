// Responses of the OAuth endpoints: redirects to the program, JSON, and error pages.

import { invalidArgument } from "../../kernel/errors.js";
import type { WebRequest, WebResponse } from "../../kernel/web.js";
import type { Store } from "../../store/store.js";
import type { Tx } from "../../store/transaction.js";
import { hostOf, type LoginContext } from "./context.js";
import { ACCOUNT_NOT_FOUND, isOAuthError, type OAuthError, oauthError, toOAuthError } from "./oauth-error.js";
import { redirect } from "./page.js";
import { renderFailurePage } from "./pages.js";
import { omitEmpty } from "./request.js";
import type { Destination } from "./state.js";

/**
 * Responds with an error where the outcome was to go: programs on the same machine get a redirect, people get a page.
 *
 * @param error an {@link OAuthError} or a thrown error; rethrown when its cause must not be shown
 */
export function respondWithError(context: LoginContext, to: Destination, error: unknown): WebResponse {
  const { error: code, description, status, rejection } = requireOAuthError(error);
  const errorParameters = { error_description: description, status_code: String(status) };
  switch (to.kind) {
    case "code": {
      // RFC 6749, section 4.1.2.1, has no code for an unknown account.
      const registered = code === ACCOUNT_NOT_FOUND ? "access_denied" : code;
      return { ...redirectToClient(context, to, { error: registered, ...errorParameters }), rejection };
    }
    case "redirect":
      // Published clients send these parameters with the value "true" to ask for a token, and would read that as the
      // token.
      return {
        ...redirect(setParameters(to.url, { error: code, ...errorParameters }, ["token", "refresh_token"])),
        rejection,
      };
    default:
      return renderErrorPage(context, error);
  }
}

/**
 * Responds as {@link respondWithError} does, with `server_error` for internal errors, so that the program does not
 * wait forever.
 */
export function respondToFailedLogin(context: LoginContext, to: Destination, error: unknown): WebResponse {
  if (!(error instanceof Error) || toOAuthError(error) !== undefined) return respondWithError(context, to, error);
  context.onProblem("a login could not be completed", error);
  return respondWithError(context, to, oauthError("server_error", "the login could not be finished", 500));
}

/** Redirects to a program that asked for a code (RFC 6749, section 4.1.2; RFC 9207). */
export function redirectToClient(
  { origin }: Pick<LoginContext, "origin">,
  { redirectUri, state }: Extract<Destination, { kind: "code" }>,
  parameters: Readonly<Record<string, string>>,
): WebResponse {
  return redirect(setParameters(redirectUri, { ...parameters, state, iss: origin.issuer }));
}

/** Renders an error page; rethrows internal errors. */
export function renderErrorPage(context: LoginContext, error: unknown): WebResponse {
  return renderFailurePage({ host: hostOf(context) }, requireOAuthError(error));
}

function requireOAuthError(error: unknown): OAuthError {
  if (typeof error === "object" && error !== null && !(error instanceof Error) && isOAuthError(error)) return error;
  const found = toOAuthError(error);
  if (found === undefined) throw error;
  return found;
}

/** The result of a transaction: a response, or a function that builds it after the commit, which may sign tokens. */
export type AfterCommit<T> = T | (() => Promise<T>);

/** Runs a transaction and builds its response after the commit. */
export async function writeAndRespond<T extends object>(
  store: Pick<Store, "write">,
  unit: (tx: Tx) => Promise<AfterCommit<T>>,
): Promise<T> {
  const response = await store.write(unit);
  return typeof response === "function" ? response() : response;
}

// Requests and responses of the endpoints that programs call.

/** Builds a JSON response that must not be cached (RFC 6749, section 5.1). */
export function buildJsonResponse(
  status: number,
  body: object,
  headers: Readonly<Record<string, string>> = {},
): WebResponse {
  return {
    status,
    headers: { "content-type": "application/json", "cache-control": "no-store", pragma: "no-cache", ...headers },
    body: JSON.stringify(body),
  };
}

/**
 * Handles a form without its empty parameters. OAuth errors, returned or thrown, become the response of RFC 6749,
 * section 5.2; internal errors are rethrown.
 */
export async function handleForm(
  request: WebRequest,
  work: (form: URLSearchParams) => Promise<WebResponse | OAuthError>,
): Promise<WebResponse> {
  try {
    const [type = ""] = (request.header("content-type") ?? "").split(";");
    if (type.trim().toLowerCase() !== "application/x-www-form-urlencoded") {
      throw invalidArgument({ field: "content-type", subject: "", rule: "the body must be a form" });
    }
    const response = await work(omitEmpty(await request.form()));
    return isOAuthError(response) ? buildErrorResponse(response) : response;
  } catch (error) {
    const found = toOAuthError(error);
    if (found === undefined) throw error;
    return buildErrorResponse(found);
  }
}

function buildErrorResponse({ error, description, status, retryAfterS, rejection }: OAuthError): WebResponse {
  const headers = retryAfterS === undefined ? undefined : { "retry-after": String(retryAfterS) };
  return { ...buildJsonResponse(status, { error, error_description: description }, headers), rejection };
}

/**
 * Sets parameters in the query of a validated URL.
 *
 * @param removed names of parameters to remove first
 */
export function setParameters(
  url: string,
  parameters: Readonly<Record<string, string | undefined>>,
  removed: readonly string[] = [],
): string {
  const result = new URL(url);
  for (const name of removed) result.searchParams.delete(name);
  for (const [name, value] of Object.entries(parameters)) {
    if (value !== undefined) result.searchParams.set(name, value);
  }
  return result.href;
}
