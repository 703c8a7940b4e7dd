// Login with a browser anywhere: the person opens a page there, and the service
// hands over the result to whoever can open it.
import { setTimeout as sleep } from "node:timers/promises";
import { Code, ConnectError } from "@connectrpc/connect";
import type { Login } from "./credentials-file.js";
import { failure } from "./failure.js";
import { exchangeIdToken } from "./grants.js";
import { newHeadlessKey } from "./headless-key.js";
import { type CliLoginRequest, loginParameters } from "./login-request.js";
import { askService, type ServiceAnswer } from "./service.js";

/** How long waiting takes, in milliseconds. */
export interface HeadlessPace {
  /** Between two questions whether the person is done. */
  readonly pollMs: number;
  /** For all of it. */
  readonly waitMs: number;
}

/** With these the login is not done, or the service not there, for now. */
const NOT_YET: ReadonlySet<Code> = new Set([
  Code.NotFound,
  Code.ResourceExhausted,
  Code.Unavailable,
  Code.DeadlineExceeded,
]);

/**
 * Logs in.
 *
 * @param show tells the person which page to open, and the code that the page asks for
 * @throws ConnectError DEADLINE_EXCEEDED when the person takes too long, or what the service refuses the login with
 */
export async function headlessLogin(
  api: string,
  loginRequest: CliLoginRequest,
  show: (url: string, confirmation: string) => void,
  { pollMs, waitMs }: HeadlessPace,
): Promise<Login> {
  const key = newHeadlessKey();
  const query = new URLSearchParams([["headless_code", key.code], ...loginParameters(loginRequest)]);
  show(`${api}/oauth?${query}`, key.confirmation);
  const endMs = performance.now() + waitMs;
  for (;;) {
    const session = await sessionOf(api, key.code);
    if (session) {
      const { idToken, provider = providerUid(loginRequest) } = key.open(
        session.ecdhPublicKey,
        session.encryptedIdtoken,
      );
      return exchangeIdToken(api, { idToken, ...(provider !== undefined && { provider }) }, loginRequest);
    }
    if (performance.now() > endMs) {
      throw failure(Code.DeadlineExceeded, `the login was not done within ${waitMs / 60_000} minutes`);
    }
    await sleep(pollMs);
  }
}

async function sessionOf(api: string, code: string): Promise<ServiceAnswer | undefined> {
  const query = new URLSearchParams({ code });
  try {
    return await askService({ method: "GET", api, path: "/sts/headless_sessions", query });
  } catch (error) {
    if (error instanceof ConnectError && NOT_YET.has(error.code)) return undefined;
    throw error;
  }
}

// A provider lies within a group, so its uid has a slash, and the name of an organisation none.
function providerUid({ provider }: CliLoginRequest): string | undefined {
  return provider?.includes("/") ? provider : undefined;
}
