// Where a login may lead back to: a program on the same machine that listens on
// a port of its own (RFC 8252, section 7.3), and nowhere else.
import { invalidArgument } from "../../kernel/errors.js";

const LOOPBACK = /^http:\/\/(127\.0\.0\.1|\[::1\]|localhost):([1-9]\d{0,4})(\/[^?#]*)?(\?[^#]*)?$/;
const MAX_LENGTH = 1024;

/**
 * Requires that `text` is an http URL of 127.0.0.1, [::1] or localhost with a port. It must mean to a
 * browser what it seems to say: what changes when it is parsed is refused, and so are a user name and
 * a fragment.
 *
 * @param field the parameter it came in
 * @throws ApiError INVALID_ARGUMENT
 */
export function requireLoopback(text: string | undefined, field: string): string {
  if (text !== undefined && isLoopbackUrl(text)) return text;
  const rule = "must be an http URL of 127.0.0.1, [::1] or localhost with a port";
  throw invalidArgument({ field, description: `${field} ${rule}` });
}

function isLoopbackUrl(text: string): boolean {
  const match = text.length <= MAX_LENGTH ? LOOPBACK.exec(text) : null;
  if (match === null || !/^[\x21-\x7e]+$/.test(text) || !URL.canParse(text)) return false;
  const [, host, port, path = "/"] = match;
  const url = new URL(text);
  const isSame = url.hostname === host && (url.port || "80") === port && url.pathname === path;
  return isSame && url.protocol === "http:" && url.username === "" && url.password === "" && url.hash === "";
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
