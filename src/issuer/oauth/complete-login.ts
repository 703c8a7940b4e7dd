// Completes a login: signs the person in and delivers the outcome to the program.
import { requireRoomForLogin } from "../../iam/people/join-quota.js";
import type { BindingDecisions } from "../../iam/people/pending-organizations.js";
import { parseName } from "../../iam/people/registration.js";
import { type SignIn, type SignInResult, sessionView, signIn } from "../../iam/people/sign-in.js";
import { notPermitted } from "../../kernel/errors.js";
import { rootOf } from "../../kernel/uidp.js";
import { CALLBACK_PATH, type WebRequest, type WebResponse } from "../../kernel/web.js";
import { describeChange } from "../../pipeline/body.js";
import { Reservation } from "../../pipeline/resource/reservation.js";
import { identityKind } from "../../store/iam/identities.js";
import type { Tx } from "../../store/transaction.js";
import { inviteFailureKey } from "../sts/failure-limiter.js";
import { parseTokenGrant, resolveScopes } from "../sts/token-request.js";
import { readIssueDate, type TokenGrant } from "../tokens.js";
import { LOGIN_MS } from "./browser.js";
import { hostOf, type LoginContext } from "./context.js";
import { completeHeadlessSession, isHeadlessOpen } from "./headless.js";
import { loginOverError } from "./oauth-error.js";
import type { VerifiedIdToken } from "./oidc.js";
import { redirect } from "./page.js";
import { renderDonePage } from "./pages.js";
import { appendLoginRow, applyBindingDecisions } from "./pending-bindings.js";
import type { Provider } from "./provider-selection.js";
import { type AfterCommit, redirectToClient, respondWithError, setParameters, writeAndRespond } from "./responses.js";
import { findStart, originOfPerson } from "./start-limit.js";
import type { LoginRequest, SignedInFor } from "./state.js";
import { createSecret } from "./tickets.js";

/** How long an authorization code is valid, in milliseconds. */
const CODE_MS = 60_000;
/** The event type of a registration, the same for all ways to register. */
const REGISTERED = "dev.chainguard.api.auth.registered.v1";

/** A login whose ID token was verified. */
export interface LoginCompletion {
  readonly login: LoginRequest;
  readonly provider: Provider;
  readonly verified: VerifiedIdToken;
  /** The hash of the browser's cookie. */
  readonly browser: string;
  readonly request: WebRequest;
  /** The person's decisions about pending role bindings, where the page asked for them. */
  readonly decisions?: BindingDecisions | undefined;
  /**
   * When all tokens of the person had been revoked last, as the page that asked for consent was made; 0 for never, and
   * undefined where no page asked.
   */
  readonly revokeTimeMs?: number | undefined;
}

/**
 * Signs the person in and delivers the outcome, in one transaction.
 *
 * @throws ApiError when the person has no account, the invite or another parameter is not valid, or all tokens of the person
 * were revoked while the page waited for consent
 */
export async function completeLogin(context: LoginContext, completion: LoginCompletion): Promise<WebResponse> {
  const { store, inviteLimiter, quotas, clock } = context;
  const { login, request } = completion;
  if (login.identity !== undefined) return assumeIdentity(context, completion, login.identity);
  const limiterKeys = login.invite === undefined ? [] : [inviteFailureKey(request.remoteAddress, login.invite)];
  return inviteLimiter.guard(limiterKeys, async () => {
    const signInRequest = buildSignIn(context, completion);
    const reservation = new Reservation();
    try {
      await store.read((tx) => requireRoomForLogin(tx, signInRequest, { quotas, nowMs: clock(), reservation }));
      return await writeAndRespond(store, async (tx) => {
        if (reservation.mustRecount) await requireRoomForLogin(tx, signInRequest, { quotas, nowMs: clock() });
        return signInAndRespond(tx, context, completion);
      });
    } finally {
      reservation.release();
    }
  });
}

/** Builds the sign-in of a person from a verified ID token. */
export function buildSignIn(
  { registration }: Pick<LoginContext, "registration">,
  { login, provider, verified }: Pick<LoginCompletion, "login" | "provider" | "verified">,
): SignIn {
  const { subject, claims, isPartial } = verified;
  const { issuer, providerUid } = provider;
  const register = login.register && registration === "open";
  return { issuer, subject, claims, isPartial, providerUid, invite: login.invite, register };
}

/**
 * Whether the login issues a refresh token: the program asks for one, and the provider is the operator's. An
 * organisation's provider must be able to end logins, which it cannot with refresh tokens.
 */
export function getsRefreshToken({ refresh }: LoginRequest, { providerUid }: Provider): boolean {
  return refresh && providerUid === undefined;
}

/**
 * Builds what tokens of a login are valid for.
 *
 * @throws ApiError INVALID_ARGUMENT when a scope names no organisation in which the person holds a grant
 */
export async function buildTokenGrant(
  tx: Tx,
  { asked: tokenRequest, identityUid, mappings, informative, atMs }: SignedInFor,
  audiences: readonly string[],
): Promise<TokenGrant> {
  const requested = await resolveScopes(tx, parseTokenGrant(tokenRequest, audiences), { identityUid, mappings });
  return { ...requested, mappings, ...(mappings.length > 0 && { mappedMs: atMs }), informative };
}

async function assumeIdentity(context: LoginContext, { login, verified, request }: LoginCompletion, identity: string) {
  const { trace, record } = request;
  const exchangeRequest = { ...login.asked, identity, identityProvider: "", trace, record };
  const { token } = await context.exchanger.exchange(exchangeRequest, verified.idToken, request.remoteAddress);
  return redirectWithToken(login, token, undefined);
}

async function signInAndRespond(
  tx: Tx,
  context: LoginContext,
  completion: LoginCompletion,
): Promise<AfterCommit<WebResponse>> {
  const { clock, ids, quotas } = context;
  const { login, provider, request, decisions, revokeTimeMs } = completion;
  const nowMs = clock();
  const signedIn = await signIn(tx, buildSignIn(context, completion), { ids, nowMs, quotas });
  const { identityUid, mappings, informative } = signedIn;
  const person = await tx.table(identityKind).find(identityUid);
  if (revokeTimeMs !== undefined && person?.revokeTimeMs !== revokeTimeMs) {
    throw notPermitted(
      "all tokens of this identity were revoked after this login began: log in again",
      "token_revoked",
    );
  }
  if (decisions !== undefined) {
    await applyBindingDecisions(tx, { identityUid, decisions }, { nowMs, method: request.path, request });
  }
  const refresh = getsRefreshToken(login, provider);
  const issueDate = await readIssueDate(tx, identityUid, nowMs);
  const known: SignedInFor = { identityUid, mappings, informative, asked: login.asked, refresh, ...issueDate };
  const response = await deliverOutcome(tx, context, completion, known);
  await appendAuditRow(tx, completion, signedIn, nowMs);
  return response;
}

async function deliverOutcome(
  tx: Tx,
  context: LoginContext,
  { login, provider, verified, browser }: LoginCompletion,
  known: SignedInFor,
): Promise<AfterCommit<WebResponse>> {
  const { tickets, tokens, origin } = context;
  const { to, challenge = "", idToken } = login;
  const nowMs = known.atMs;
  // Also where tokens are issued later, so that the person learns now that a scope is rejected.
  const grant = await buildTokenGrant(tx, known, origin.audiences);
  switch (to.kind) {
    case "code": {
      const code = createSecret();
      const { clientId, redirectUri } = to;
      const issued = { used: false, clientId, redirectUri, challenge, login: known, idToken, browser } as const;
      await tickets.put(tx, "code", code, issued, nowMs + CODE_MS);
      return redirectToClient(context, to, { code });
    }
    case "redirect": {
      const refresh = known.refresh ? await tokens.createRefreshToken(tx, known.identityUid, grant, nowMs) : undefined;
      const token = await tokens.issue(tx, known.identityUid, grant, nowMs);
      return async () => redirectWithToken(login, (await tokens.sign(token)).token, refresh);
    }
    case "headless": {
      if (!(await isHeadlessOpen(tx, to.key, nowMs))) return respondWithError(context, to, loginOverError());
      const outcome =
        provider.providerUid === undefined
          ? verified.idToken
          : JSON.stringify({ id_token: verified.idToken, identity_provider: provider.providerUid });
      await completeHeadlessSession(tx, to.key, outcome, nowMs);
      const text = "The terminal has access now. You can close this page and go back to it.";
      return renderDonePage({ host: hostOf(context) }, "Signed in", text);
    }
    case "device": {
      const approval = createSecret();
      const { userCode, asker } = to;
      const outcome = { login: known, providerUid: provider.providerUid };
      const pending = {
        stage: "approval",
        browser,
        userCode,
        asker,
        person: displayNameOf(verified),
        outcome,
      } as const;
      const start = await findStart(tx, "authorization", originOfPerson(known.identityUid), nowMs);
      await tickets.start(tx, "authorization", approval, pending, nowMs + LOGIN_MS, start);
      return redirect(`/activate?approval=${approval}`);
    }
  }
}

// Published clients send these parameters with the value "true" to ask for a token or an error. The ones that get no
// value are removed.
function redirectWithToken({ to }: LoginRequest, token: string, refreshToken: string | undefined): WebResponse {
  if (to.kind !== "redirect") throw new TypeError("only logins with redirect get a token in the redirect");
  return redirect(setParameters(to.url, { token, refresh_token: refreshToken }, ["refresh_token", "error"]));
}

async function appendAuditRow(
  tx: Tx,
  { provider, request }: LoginCompletion,
  { identityUid, group }: SignInResult,
  nowMs: number,
): Promise<void> {
  const isNew = (await tx.table(identityKind).find(identityUid))?.createTimeMs === nowMs;
  if (!isNew && group === undefined) return;
  const subjectUid = group ?? (provider.providerUid === undefined ? identityUid : rootOf(provider.providerUid));
  const change = describeChange(sessionView, { after: { identity: identityUid, group: group ?? "" } });
  const row = { type: REGISTERED, subjectUid, actorUid: identityUid, change };
  await appendLoginRow(tx, row, { nowMs, method: CALLBACK_PATH, request });
}

/** How pages call a person: by the name and the email address in the ID token, as far as it has them, else by the subject. */
export function displayNameOf({ claims, subject }: VerifiedIdToken): string {
  const texts = [claims.email, claims.preferred_username].filter((one) => typeof one === "string" && one !== "");
  const [address] = texts as string[];
  const name = parseName({ claims });
  if (name === "" || name === address) return (address ?? subject).slice(0, 255);
  return address === undefined ? name : `${name} (${address.slice(0, 255)})`;
}
