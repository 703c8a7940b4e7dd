// The tokens of the stored logins, which are renewed before they expire, and the commands `arbor auth token` and `arbor
// auth logout`.
import type { TokenSource } from "../../../client/token-source.js";
import { Code, CommandError, notLoggedIn } from "../../errors.js";
import { type ApiFlags, normalizeApi, parseJsonObject, resolveApi } from "../service.js";
import {
  type Credentials,
  changeCredentials,
  findCredentialsFile,
  readCredentials,
  type StoredLogin,
  setLogin,
  UnwritableCredentials,
} from "./credentials-file.js";
import { isTime, parseClaims } from "./token-claims.js";

/**
 * `arbor auth token`
 *
 * @throws CommandError UNAUTHENTICATED without a login
 */
export async function tokenCommand({ audience, ...flags }: ApiFlags & { readonly audience?: string }): Promise<void> {
  const api = resolveApi(flags);
  const isForApi = audience === undefined || audience.replace(/\/+$/, "") === api;
  const token = isForApi ? await (await findStoredToken(api))?.token() : await issueTokenFor(api, audience);
  if (token === undefined) throw notLoggedIn(api);
  process.stdout.write(`${token}\n`);
}

/**
 * `arbor auth logout`: ends a login at the service, and removes it from this machine even if the service cannot be reached.
 * API tokens that the service has issued stay valid until they expire, within an hour.
 */
export async function logoutCommand(flags: ApiFlags): Promise<void> {
  const api = resolveApi(flags);
  const file = findCredentialsFile();
  let found = false;
  let failure = "";
  // Under the lock, so that no other process renews the login meanwhile.
  await changeCredentials(file, async (stored) => {
    const login = stored.logins.get(api);
    if (login === undefined) return stored;
    found = true;
    failure = await endLogin(api, login);
    return setLogin(stored, api, undefined);
  });
  process.stdout.write(
    found ? `removed the login at ${api} from ${file}\n` : `there was no login at ${api} in ${file}\n`,
  );
  if (failure !== "") process.stderr.write(`arbor: ${failure}\n`);
  noteVariable();
}

/** Says that commands use the variable instead of the login that the command was about. */
export function noteVariable(): void {
  if (!process.env.ARBOR_TOKEN) return;
  const text = "ARBOR_TOKEN is set, and commands use it instead of the login; to use the login: unset ARBOR_TOKEN";
  process.stderr.write(`arbor: ${text}\n`);
}

/** Ends a login at the service. Returns what to print if that fails: the login is removed from this machine anyway. */
async function endLogin(api: string, { refreshToken }: StoredLogin): Promise<string> {
  // Other logins have nothing at the service but API tokens.
  if (refreshToken === undefined) return "";
  const { revokeLogin } = await import("./grants.js");
  try {
    await revokeLogin(api, refreshToken);
    return "";
  } catch (error) {
    if (!(error instanceof CommandError)) throw error;
    const [cause] = error.message.split("\n");
    const expiresMs = parseRefreshExpiryMs(refreshToken);
    const end = expiresMs === undefined ? "later" : `at ${new Date(expiresMs).toISOString()}`;
    return `the login was not ended at the service, where it ends ${end}: ${cause}`;
  }
}

/**
 * Finds the tokens of the login at a service; undefined without a login and for an invalid address. A token is renewed
 * shortly before it expires, and when the service rejects it. Processes that renew at the same time get the same token.
 *
 * @param api the address of the service; its login is never sent anywhere else
 * @throws CommandError FAILED_PRECONDITION when the credentials file is open to others or damaged
 */
export async function findStoredToken(api: string): Promise<TokenSource | undefined> {
  const base = tryNormalizeApi(api);
  const file = findCredentialsFile();
  if (base === undefined || !(await readCredentials(file)).logins.has(base)) return undefined;
  return {
    token: () => getCurrentToken(file, base),
    renew: (rejected) => getCurrentToken(file, base, rejected),
  };
}

/**
 * Issues a token of the login at a service for another audience. It is not stored.
 *
 * @throws CommandError UNAUTHENTICATED when there is no login, or it has ended
 */
export async function issueTokenFor(api: string, audience: string): Promise<string> {
  const file = findCredentialsFile();
  let token = "";
  try {
    await changeCredentials(file, async (stored) => {
      const login = getLogin(stored, api);
      const renewed = await renew(api, login, audience);
      token = renewed.token;
      return setLogin(stored, api, { ...renewed, token: login.token });
    });
    return token;
  } catch (error) {
    return renewUnstored(error, api, getLogin(await readCredentials(file), api), audience);
  }
}

async function getCurrentToken(file: string, api: string, rejected?: string): Promise<string> {
  const isUsable = ({ token }: StoredLogin) => token !== rejected && isFresh(token, Date.now());
  const login = getLogin(await readCredentials(file), api);
  if (isUsable(login)) return login.token;
  try {
    let { token } = login;
    await changeCredentials(file, async (stored) => {
      const latest = getLogin(stored, api);
      // Another process may have renewed it while this one waited for the lock.
      const next = isUsable(latest) ? latest : await renew(api, latest, api);
      token = next.token;
      return next === latest ? stored : setLogin(stored, api, next);
    });
    return token;
  } catch (error) {
    // The old token is used until it expires. But an error of storing a new login is thrown, because the login is lost.
    if (error instanceof CommandError && login.token !== rejected && isValid(login.token, Date.now()))
      return login.token;
    return renewUnstored(error, api, login, api);
  }
}

/**
 * Gets the token of the login at a service that docker sends to a registry, which is limited to the registry. It is
 * renewed as {@link findStoredToken} renews a token.
 *
 * @throws CommandError UNAUTHENTICATED when there is no login, or it has ended
 */
export async function getRegistryToken(api: string): Promise<string> {
  const file = findCredentialsFile();
  const isUsable = ({ registryToken }: StoredLogin) =>
    registryToken !== undefined && isFresh(registryToken, Date.now());
  const login = getLogin(await readCredentials(file), api);
  let { registryToken = "" } = login;
  if (isUsable(login)) return registryToken;
  try {
    const { REGISTRY_CAPABILITIES } = await import("./registry-limit.js");
    await changeCredentials(file, async (stored) => {
      const latest = getLogin(stored, api);
      const renewed = isUsable(latest) ? undefined : await renew(api, latest, api, REGISTRY_CAPABILITIES);
      registryToken = renewed?.token ?? latest.registryToken ?? "";
      return renewed === undefined ? stored : setLogin(stored, api, { ...renewed, token: latest.token, registryToken });
    });
    return registryToken;
  } catch (error) {
    if (error instanceof CommandError && registryToken !== "" && isValid(registryToken, Date.now()))
      return registryToken;
    return renewUnstored(error, api, login, api, (await import("./registry-limit.js")).REGISTRY_CAPABILITIES);
  }
}

// Where nothing can be stored, such as in a container with a read-only home, an identity gets a token for this command alone. A
// refresh token is good for one use, so that login would end.
async function renewUnstored(
  error: unknown,
  api: string,
  login: StoredLogin,
  audience: string,
  cap?: readonly string[],
): Promise<string> {
  if (!(error instanceof UnwritableCredentials) || login.workload === undefined) throw error;
  return (await renew(api, login, audience, cap)).token;
}

async function renew(api: string, login: StoredLogin, audience: string, cap?: readonly string[]): Promise<StoredLogin> {
  const { workload, refreshToken } = login;
  const ended = `the login at ${api} has ended`;
  if (workload === undefined && refreshToken === undefined) throw notLoggedIn(api, ended);
  const { renewLogin, exchangeWorkloadToken } = await import("./grants.js");
  if (workload) return { ...login, token: await exchangeWorkloadToken(api, workload, audience, cap) };
  try {
    return { ...login, ...(await renewLogin(api, refreshToken ?? "", audience, cap)) };
  } catch (error) {
    if (error instanceof CommandError && error.code === Code.Unauthenticated) throw notLoggedIn(api, ended);
    throw error;
  }
}

function getLogin({ logins }: Credentials, api: string): StoredLogin {
  const login = logins.get(api);
  if (login === undefined) throw notLoggedIn(api);
  return login;
}

// An invalid address has no login; the caller reports the error.
function tryNormalizeApi(api: string): string | undefined {
  try {
    return normalizeApi(api, "api");
  } catch (error) {
    if (error instanceof TypeError) return undefined;
    throw error;
  }
}

/** The longest time before its expiry that a token is renewed, in milliseconds. */
const EARLY_MS = 300_000;

/** Whether `token` is valid for another five minutes, or half of its life if that is shorter. */
function isFresh(token: string, nowMs: number): boolean {
  const { issuedMs = nowMs, expiresMs = Number.POSITIVE_INFINITY } = parseClaims(token);
  return expiresMs - nowMs > Math.min(EARLY_MS, (expiresMs - issuedMs) / 2);
}

/** Whether `token` has not expired. A token without an expiry never does. */
function isValid(token: string, nowMs: number): boolean {
  return (parseClaims(token).expiresMs ?? Number.POSITIVE_INFINITY) > nowMs;
}

/**
 * Parses the expiry of a refresh token, which is base64 of JSON with `exp`, to epoch milliseconds; undefined without
 * one.
 */
export function parseRefreshExpiryMs(refreshToken: string): number | undefined {
  const { exp } = parseJsonObject(Buffer.from(refreshToken, "base64").toString());
  return isTime(exp) ? exp * 1000 : undefined;
}
