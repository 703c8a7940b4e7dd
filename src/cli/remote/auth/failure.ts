import { Code, ConnectError } from "@connectrpc/connect";

/** An error of the login commands, in the form that token sources and exit codes know. */
export function failure(code: Code, text: string, cause?: unknown): ConnectError {
  return new ConnectError(text, code, undefined, undefined, cause);
}

/** UNAUTHENTICATED, and what to do about it. */
export function notLoggedIn(api: string, why = `not logged in to ${api}`): ConnectError {
  return failure(Code.Unauthenticated, `${why}; run: arbor auth login --api ${api}`);
}
