// The login of the console: the code flow with PKCE (RFC 7636). What connects its two halves lies in sessionStorage, which
// belongs to this tab: a response that this tab did not ask for has no verifier here, so nobody can sign it in as
// somebody else.
import { randomText, toBase64Url } from "./half.js";

/** The path at which the service sends the browser back. */
export const CALLBACK_PATH = "/console/callback";

const PENDING = "arbor-login";

/** A login that this tab has begun. */
interface PendingLogin {
  readonly state: string;
  readonly verifier: string;
  /** The path to go on with. */
  readonly backTo: string;
  /** Whether the login must not show any page. */
  readonly silent: boolean;
  /** The code that has come back. */
  readonly code?: string;
}

export interface LoginOptions {
  /** The path to go on with; the present one unless given. */
  readonly backTo?: string;
  /** The code of an invite to accept. */
  readonly invite?: string;
  /** The uid of an organisation's identity provider to sign in with. */
  readonly idpId?: string;
  /** `none`: without any page; `select_account`: as somebody else. */
  readonly prompt?: "none" | "select_account";
}

/** Sends the browser to the login. The page ends with it. */
export async function beginLogin({ backTo = currentPath(), invite, idpId, prompt }: LoginOptions = {}): Promise<void> {
  const pending: PendingLogin = { state: randomText(), verifier: randomText(), backTo, silent: prompt === "none" };
  sessionStorage.setItem(PENDING, JSON.stringify(pending));
  const challenge = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(pending.verifier));
  const query = new URLSearchParams({
    response_type: "code",
    client_id: "console",
    redirect_uri: `${location.origin}${CALLBACK_PATH}`,
    code_challenge: toBase64Url(new Uint8Array(challenge)),
    code_challenge_method: "S256",
    state: pending.state,
  });
  if (invite !== undefined) query.set("invite", invite);
  if (idpId !== undefined) query.set("idp_id", idpId);
  if (prompt !== undefined) query.set("prompt", prompt);
  location.assign(`/oauth?${query}`);
}

/** What the login has sent the browser back with. */
export type LoginResponse =
  | { readonly kind: "code"; readonly code: string; readonly verifier: string; readonly backTo: string }
  | { readonly kind: "failed"; readonly reason: string; readonly backTo: string; readonly silent: boolean }
  /** This tab has begun no such login. */
  | { readonly kind: "unknown" };

/**
 * Reads the response of the login in the address of the page, and takes it out of there. The code is kept until
 * {@link forgetLogin}, so that a reload can go on.
 */
export function takeLoginResponse(): LoginResponse {
  const query = new URLSearchParams(location.search);
  history.replaceState(null, "", CALLBACK_PATH);
  const pending = JSON.parse(sessionStorage.getItem(PENDING) ?? "null") as PendingLogin | null;
  const isReload = query.size === 0 && pending?.code !== undefined;
  if (pending === null || (!isReload && query.get("state") !== pending.state)) return { kind: "unknown" };
  const { backTo, verifier, silent } = pending;
  const code = query.get("code") ?? pending.code;
  if (code !== undefined) {
    sessionStorage.setItem(PENDING, JSON.stringify({ ...pending, code }));
    return { kind: "code", code, verifier, backTo };
  }
  const reason = query.get("error_description") ?? query.get("error") ?? "the login gave no reason";
  return { kind: "failed", reason, backTo, silent };
}

export function forgetLogin(): void {
  sessionStorage.removeItem(PENDING);
}

/** The path of this page, to come back to. */
function currentPath(): string {
  const { pathname, search, hash } = location;
  return pathname === CALLBACK_PATH ? "/console/" : `${pathname}${search}${hash}`;
}
