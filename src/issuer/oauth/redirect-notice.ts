// Notices for the operator's log at start: the redirect URIs that must be registered at providers before people can
// sign in through them.

import type { LoginProvider } from "../../kernel/login-providers.js";
import type { Clock } from "../../kernel/time.js";
import { CALLBACK_PATH } from "../../kernel/web.js";
import { identityProviderKind } from "../../store/iam/identity-providers.js";
import type { Store } from "../../store/store.js";
import { loginCallbackPath } from "./provider-selection.js";

/** The setting that stores the redirect URIs of the last start. */
const SETTING = "redirect_uris";
/** The largest number of organisations' providers in a notice. */
const MAX_NAMED = 20;

/** The redirect URIs at the last start. */
interface RecordedUris {
  /**
   * When this installation began to give organisations' providers redirect URIs of their own, in epoch milliseconds.
   */
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
 * Finds redirect URIs that must be registered again: those of login providers that changed since the last start, and
 * those of organisations' providers that were not updated since each has its own.
 *
 * @param issuer the issuer of this service, the prefix of redirect URIs
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
    const kept = await tx.settings.find(SETTING);
    // Earlier releases had one redirect URI for all providers and no such setting.
    const known: RecordedUris =
      kept === undefined ? { sinceMs: clock(), paths: {} } : (JSON.parse(kept) as RecordedUris);
    const current: RecordedUris = { sinceMs: known.sinceMs, paths };
    await tx.settings.put(SETTING, JSON.stringify(current));
    return known;
  });
  const waiting = await store.read(async (tx) =>
    tx.table(identityProviderKind).findUnchangedSince(known.sinceMs, MAX_NAMED + 1),
  );
  const notices: RedirectNotice[] = [];
  const changed = Object.entries(paths).filter(([name, path]) => (known.paths[name] ?? CALLBACK_PATH) !== path);
  if (changed.length > 0) {
    notices.push({
      message: "register these redirect URIs at the login providers, or nobody can sign in through them",
      redirectUris: Object.fromEntries(changed.map(([name, path]) => [name, `${issuer}${path}`])),
    });
  }
  if (waiting.length > 0) {
    const more = waiting.length > MAX_NAMED ? `the first ${MAX_NAMED}; ` : "";
    notices.push({
      message: `organisations must register ${issuer}${CALLBACK_PATH}/UID at these identity providers (${more}one that is updated is not listed again)`,
      identityProviders: waiting.slice(0, MAX_NAMED),
    });
  }
  return notices;
}
