// Login with a browser on the same machine: an authorization code with PKCE
// (RFC 7636) that comes back to a loopback address (RFC 8252).
import { createHash, randomBytes } from "node:crypto";
import { Code } from "@connectrpc/connect";
import type { Login } from "./credentials-file.js";
import { failure } from "./failure.js";
import { CLIENT_ID, redeemCode } from "./grants.js";
import { type CliLoginRequest, limitParameters, loginParameters } from "./login-request.js";
import { startLoopback } from "./loopback.js";

/**
 * Logs in.
 *
 * @param show tells the person to open the page, or opens it
 * @param waitMs how long the person may take, in milliseconds
 * @throws ConnectError DEADLINE_EXCEEDED when they take longer, or what the service refuses the login with
 */
export async function browserLogin(
  api: string,
  loginRequest: CliLoginRequest,
  show: (url: string) => Promise<void>,
  waitMs: number,
): Promise<Login> {
  const verifier = randomBytes(32).toString("base64url");
  const state = randomBytes(32).toString("base64url");
  const loopback = await startLoopback(state, (code, redirectUri) => redeemCode(api, { code, verifier, redirectUri }));
  const query = new URLSearchParams({
    response_type: "code",
    client_id: CLIENT_ID,
    redirect_uri: loopback.redirectUri,
    code_challenge: createHash("sha256").update(verifier).digest("base64url"),
    code_challenge_method: "S256",
    state,
    audience: api,
    create_refresh_token: "true",
  });
  for (const [name, value] of [...loginParameters(loginRequest), ...limitParameters(loginRequest, "scope")])
    query.append(name, value);
  const late = failure(Code.DeadlineExceeded, `the browser did not come back within ${waitMs / 60_000} minutes`);
  const timer = setTimeout(() => loopback.fail(late), waitMs);
  try {
    // Heard at once, since the browser may be faster than whatever opened it.
    const [login] = await Promise.all([loopback.result, show(`${api}/oauth?${query}`)]);
    return login;
  } catch (error) {
    loopback.fail(late);
    throw error;
  } finally {
    clearTimeout(timer);
  }
}
