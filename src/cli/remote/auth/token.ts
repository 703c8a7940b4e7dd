import { type ApiFlags, apiOf } from "./api.js";
import { storedToken, tokenFor } from "./credentials.js";
import { notLoggedIn } from "./failure.js";

/**
 * `arbor auth token`
 *
 * @throws ConnectError UNAUTHENTICATED without a login
 */
export async function tokenCommand({ audience, ...flags }: ApiFlags & { readonly audience?: string }): Promise<void> {
  const api = apiOf(flags);
  const isOwn = audience === undefined || audience.replace(/\/+$/, "") === api;
  const token = isOwn ? await (await storedToken(api))?.token() : await tokenFor(api, audience);
  if (token === undefined) throw notLoggedIn(api);
  process.stdout.write(`${token}\n`);
}
