// Tokens out of the stored logins, renewed when they run out.
import { Code, ConnectError } from "@connectrpc/connect";
import type { TokenSource } from "../../../client/token-source.js";
import { apiBase } from "./api.js";
import { isAlive, isFresh } from "./claims.js";
import {
  type Credentials,
  changeCredentials,
  credentialsFile,
  type Login,
  readCredentials,
  withLogin,
} from "./credentials-file.js";
import { notLoggedIn } from "./failure.js";
import { renewLogin, workloadToken } from "./grants.js";

/**
 * The tokens of the login at a service; undefined without one, and for an address that none can be at.
 * A token is renewed in its last minutes, and when the service refuses it. Processes that need a new
 * one at the same time get the same.
 *
 * @param api the address of the service; its login is never sent anywhere else
 * @throws ConnectError FAILED_PRECONDITION when the credentials file is open to others or damaged
 */
export async function storedToken(api: string): Promise<TokenSource | undefined> {
  const base = baseOf(api);
  const file = credentialsFile();
  if (base === undefined || !(await readCredentials(file)).logins.has(base)) return undefined;
  return {
    token: () => currentToken(file, base),
    renew: (refused) => currentToken(file, base, refused),
  };
}

/**
 * A token of the login at a service that is for another audience. It is not kept.
 *
 * @throws ConnectError UNAUTHENTICATED when there is no login, or it has ended
 */
export async function tokenFor(api: string, audience: string): Promise<string> {
  let token = "";
  await changeCredentials(credentialsFile(), async (now) => {
    const login = loginAt(now, api);
    const renewed = await renew(api, login, audience);
    token = renewed.token;
    return withLogin(now, api, { ...renewed, token: login.token });
  });
  return token;
}

async function currentToken(file: string, api: string, refused?: string): Promise<string> {
  const isUsable = ({ token }: Login) => token !== refused && isFresh(token, Date.now());
  const login = loginAt(await readCredentials(file), api);
  if (isUsable(login)) return login.token;
  try {
    let { token } = login;
    await changeCredentials(file, async (now) => {
      const held = loginAt(now, api);
      // Another process may have been first.
      const next = isUsable(held) ? held : await renew(api, held, api);
      token = next.token;
      return next === held ? now : withLogin(now, api, next);
    });
    return token;
  } catch (error) {
    // What is left of the old one will do. But a new one that could not be stored is worth an error: its login is lost.
    if (error instanceof ConnectError && login.token !== refused && isAlive(login.token, Date.now()))
      return login.token;
    throw error;
  }
}

async function renew(api: string, login: Login, audience: string): Promise<Login> {
  const { workload, refreshToken } = login;
  if (workload) return { ...login, token: await workloadToken(api, workload, audience) };
  const ended = `the login at ${api} has ended`;
  if (refreshToken === undefined) throw notLoggedIn(api, ended);
  try {
    return { ...login, ...(await renewLogin(api, refreshToken, audience)) };
  } catch (error) {
    if (error instanceof ConnectError && error.code === Code.Unauthenticated) throw notLoggedIn(api, ended);
    throw error;
  }
}

function loginAt({ logins }: Credentials, api: string): Login {
  const login = logins.get(api);
  if (login === undefined) throw notLoggedIn(api);
  return login;
}

// No login can be at any other address, and what is wrong with it is for the caller to say.
function baseOf(api: string): string | undefined {
  try {
    return apiBase(api, "api");
  } catch (error) {
    if (error instanceof TypeError) return undefined;
    throw error;
  }
}
