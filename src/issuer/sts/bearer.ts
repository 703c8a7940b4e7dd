import { unauthenticated } from "../../kernel/errors.js";

/** What a foreign token may be made of: RFC 6750's b64token, which also serves signed requests. */
const BEARER = /^[A-Za-z0-9\-._~+/]+=*$/;
const MAX_LENGTH = 16 * 1024;

/**
 * The token in an Authorization header (RFC 6750, section 2.1).
 *
 * @throws ApiError UNAUTHENTICATED
 */
export function bearerIn(authorization: string | undefined): string {
  const token = authorization?.slice(7) ?? "";
  if (authorization?.slice(0, 7).toLowerCase() !== "bearer ") throw unauthenticated();
  if (token.length > MAX_LENGTH || !BEARER.test(token)) throw unauthenticated();
  return token;
}
