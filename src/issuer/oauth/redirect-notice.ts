// What the operator's log says at start about redirect URIs: which ones must be
// registered at providers before people can sign in through them again.

import type { Clock } from "../../kernel/clock.js";
import { CALLBACK } from "../../kernel/web.js";
import type { Store } from "../../store/port.js";
import type { LoginProvider } from "./login-providers.js";
import { loginCallbackPath } from "./provider-selection.js";

/** Where it is kept which redirect URIs providers had at the last start. */
const SETTING = "redirect_uris";
/** How many providers of organisations are named; of the others it is said that there are more. */
const MAX_NAMED = 20;

/** What was at the last start. */
interface Known {
  /** When organisations' providers were given redirect URIs of their own here, in epoch milliseconds. */
  readonly sinceMs: number;
  /** The paths of the login providers of the service, by name. */
  readonly paths: Readonly<Record<string, string>>;
}

/** A message for the operator's log. */
export interface RedirectNotice {
  readonly message: string;
  /** Redirect URIs by the name of the login provider, or uids of organisations' providers. */
  readonly redirectUris?: Readonly<Record<string, string>>;
  readonly identityProviders?: readonly string[];
}

/**
 * What must be registered anew, as far as can be known here: login providers of the service whose redirect URI
 * is another than at the last start, and providers of organisations that nobody has changed since each has a
 * redirect URI of its own.
 *
 * @param issuer of this service, which redirect URIs begin with
 */
export async function findRedirectNotices(deps: {
  readonly store: Store;
  readonly clock: Clock;
  readonly issuer: string;
  readonly loginProviders: readonly LoginProvider[];
}): Promise<readonly RedirectNotice[]> {
  const { store, clock, issuer, loginProviders } = deps;
  const paths = Object.fromEntries(loginProviders.map((one) => [one.name, loginCallbackPath(one, loginProviders)]));
  const known = await store.write(async (tx) => {
    const kept = await tx.settings.get(SETTING);
    // Before this was kept, there was one redirect URI for all.
    const known: Known = kept === undefined ? { sinceMs: clock(), paths: {} } : (JSON.parse(kept) as Known);
    const current: Known = { sinceMs: known.sinceMs, paths };
    await tx.settings.put(SETTING, JSON.stringify(current));
    return known;
  });
  const waiting = await store.read(async (tx) => tx.identityProviders.unchangedSince(known.sinceMs, MAX_NAMED + 1));
  const notices: RedirectNotice[] = [];
  const changed = Object.entries(paths).filter(([name, path]) => (known.paths[name] ?? CALLBACK) !== path);
  if (changed.length > 0) {
    notices.push({
      message: "register these redirect URIs at the login providers, or nobody can sign in through them",
      redirectUris: Object.fromEntries(changed.map(([name, path]) => [name, `${issuer}${path}`])),
    });
  }
  if (waiting.length > 0) {
    const more = waiting.length > MAX_NAMED ? `the first ${MAX_NAMED}; ` : "";
    notices.push({
      message: `organisations must register ${issuer}${CALLBACK}/UID at these identity providers (${more}one that is updated is not listed again)`,
      identityProviders: waiting.slice(0, MAX_NAMED),
    });
  }
  return notices;
}
