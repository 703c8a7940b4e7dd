// How the end of a login is told: to the program that asked, or to the person.

import { invalidArgument } from "../../kernel/errors.js";
import type { WebAnswer, WebRequest } from "../../kernel/web.js";
import { hostOf, type LoginContext } from "./context.js";
import { ACCOUNT_NOT_FOUND, type Failure, failure, failureOf, isFailure } from "./oauth-error.js";
import { redirect } from "./page.js";
import { failurePage } from "./pages.js";
import type { Destination } from "./state.js";

/**
 * Tells of a failure where the outcome was to go: programs on the same machine by redirect, all others
 * with a page.
 *
 * @param error a {@link Failure} or what was thrown; rethrown if nobody may learn of it
 */
export function failed(context: LoginContext, to: Destination, error: unknown): WebAnswer {
  const { error: code, description, status } = shown(error);
  const told = { error_description: description, status_code: String(status) };
  switch (to.kind) {
    case "code": {
      // RFC 6749, section 4.1.2.1, knows no code for somebody unknown.
      const registered = code === ACCOUNT_NOT_FOUND ? "access_denied" : code;
      return answerCode(context, to, { error: registered, ...told });
    }
    case "redirect":
      // Published clients put "true" where they want a token; one would be taken for it.
      return redirect(withParameters(to.url, { error: code, ...told }, ["token", "refresh_token"]));
    default:
      return refusedPage(context, error);
  }
}

/**
 * Tells of a failure as {@link failed} does, also of one that nobody may learn of: the program must not wait for
 * ever for what went wrong here.
 */
export function failedLogin(context: LoginContext, to: Destination, error: unknown): WebAnswer {
  if (!(error instanceof Error) || failureOf(error) !== undefined) return failed(context, to, error);
  context.onProblem("a login could not be finished", error);
  return failed(context, to, failure("server_error", "the login could not be finished", 500));
}

/** Sends what a program gets that asked for a code (RFC 6749, section 4.1.2; RFC 9207). */
export function answerCode(
  { origin }: Pick<LoginContext, "origin">,
  { redirectUri, state }: Extract<Destination, { kind: "code" }>,
  parameters: Readonly<Record<string, string>>,
): WebAnswer {
  return redirect(withParameters(redirectUri, { ...parameters, state, iss: origin().issuer }));
}

/** A page for a failure; rethrows what nobody may learn of. */
export function refusedPage(context: LoginContext, error: unknown): WebAnswer {
  return failurePage({ host: hostOf(context) }, shown(error));
}

function shown(error: unknown): Failure {
  if (typeof error === "object" && error !== null && !(error instanceof Error) && isFailure(error)) return error;
  const found = failureOf(error);
  if (found === undefined) throw error;
  return found;
}

// What programs send to and get from the endpoints of OAuth 2.0.

/** An answer in JSON that nobody may keep (RFC 6749, section 5.1). */
export function oauthJson(status: number, body: object, headers: Readonly<Record<string, string>> = {}): WebAnswer {
  return {
    status,
    headers: { "content-type": "application/json", "cache-control": "no-store", pragma: "no-cache", ...headers },
    body: JSON.stringify(body),
  };
}

/**
 * Answers a request that is a form. Failures, returned or thrown, are answered as RFC 6749, section
 * 5.2, has it; anything else that is thrown is not ours to tell of.
 */
export async function withForm(
  request: WebRequest,
  work: (form: URLSearchParams) => Promise<WebAnswer | Failure>,
): Promise<WebAnswer> {
  try {
    const [type = ""] = (request.header("content-type") ?? "").split(";");
    if (type.trim().toLowerCase() !== "application/x-www-form-urlencoded") {
      throw invalidArgument({ field: "content-type", description: "the body must be a form" });
    }
    const answer = await work(await request.form());
    return isFailure(answer) ? failureJson(answer) : answer;
  } catch (error) {
    const found = failureOf(error);
    if (found === undefined) throw error;
    return failureJson(found);
  }
}

function failureJson({ error, description, status, retryAfterS }: Failure): WebAnswer {
  const headers = retryAfterS === undefined ? undefined : { "retry-after": String(retryAfterS) };
  return oauthJson(status, { error, error_description: description }, headers);
}

/**
 * A URL that was found right, with parameters set in its query.
 *
 * @param replaced names whose values in the query are dropped
 */
export function withParameters(
  url: string,
  parameters: Readonly<Record<string, string | undefined>>,
  replaced: readonly string[] = [],
): string {
  const result = new URL(url);
  for (const name of replaced) result.searchParams.delete(name);
  for (const [name, value] of Object.entries(parameters)) {
    if (value !== undefined) result.searchParams.set(name, value);
  }
  return result.href;
}
