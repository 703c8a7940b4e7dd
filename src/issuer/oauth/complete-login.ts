// The outcome of a login: who signed in, and what whoever asked for it gets.

import { requireRoomForLogin } from "../../iam/people/join-quota.js";
import type { BindingDecisions } from "../../iam/people/pending-organizations.js";
import { type SignedIn, type SignIn, signIn } from "../../iam/people/sign-in.js";
import { CALLBACK } from "../../kernel/callback-path.js";
import { rootOf } from "../../kernel/uidp.js";
import type { WebAnswer, WebRequest } from "../../kernel/web.js";
import type { Tx } from "../../store/port.js";
import { inviteFailureKey } from "../invite-failures.js";
import { grantOf } from "../sts/token-request.js";
import type { Grant } from "../tokens.js";
import { applyBindingDecisions } from "./binding-decisions.js";
import { LOGIN_MS } from "./browser.js";
import type { LoginContext } from "./context.js";
import { answerCode, failed } from "./deliver.js";
import { hostOf } from "./deps.js";
import { loginOver } from "./failure.js";
import { answerHeadlessSession, isHeadlessOpen } from "./headless.js";
import { withParameters } from "./loopback.js";
import type { Vouched } from "./oidc.js";
import { redirect } from "./page.js";
import { donePage } from "./pages.js";
import type { Provider } from "./provider-selection.js";
import type { LoginRequest, SignedInFor } from "./state.js";
import { newSecret } from "./tickets.js";

/** For how long an authorization code is good, in milliseconds. */
const CODE_MS = 60_000;
/** The type that registration has in the audit log, whichever way somebody takes. */
const REGISTERED = "dev.chainguard.api.auth.registered.v1";

/** A login that a provider vouches for. */
export interface LoginCompletion {
  readonly login: LoginRequest;
  readonly provider: Provider;
  readonly vouched: Vouched;
  /** The browser it went on in. */
  readonly browser: string;
  readonly request: WebRequest;
  /** What the person decided about roles that others gave them, where they were asked. */
  readonly decisions?: BindingDecisions | undefined;
}

/**
 * Signs the person in and hands over what was asked for, in one transaction.
 *
 * @throws ApiError when the person is not known, or what they bring is not good.
 */
export async function completeLogin(context: LoginContext, concluding: LoginCompletion): Promise<WebAnswer> {
  const { store, guesses, startLimit, quotas, clock } = context;
  const { login, provider, request } = concluding;
  if (login.identity !== undefined) return assume(context, concluding, login.identity);
  const counted = login.invite === undefined ? [] : [inviteFailureKey(request.remoteAddress, login.invite)];
  const answer = await guesses.guard(counted, async () => {
    const asked = signInRequestOf(context, concluding);
    await store.read((tx) => requireRoomForLogin(tx, asked, { quotas, nowMs: clock() }));
    return store.write((tx) => signInAndAnswer(tx, context, concluding));
  });
  if (provider.providerUid === undefined) startLimit.finish(request.remoteAddress);
  return answer;
}

/** Who signs in, and what for. */
export function signInRequestOf(
  { registration }: Pick<LoginContext, "registration">,
  { login, provider, vouched }: Pick<LoginCompletion, "login" | "provider" | "vouched">,
): SignIn {
  const { subject, claims } = vouched;
  const { issuer, providerUid } = provider;
  const register = login.register && registration === "open";
  return { issuer, subject, claims, providerUid, invite: login.invite, register };
}

/** Whether the login gives a refresh token: where it is asked for and no organisation may end the login. */
export function getsRefreshToken({ refresh }: LoginRequest, { providerUid }: Provider): boolean {
  return refresh && providerUid === undefined;
}

/** What tokens of a login are good for. */
export function grantFor({ asked, mappings, informative }: SignedInFor, audiences: readonly string[]): Grant {
  return { ...grantOf(asked, audiences), mappings, informative };
}

async function assume(context: LoginContext, { login, vouched, request }: LoginCompletion, identity: string) {
  const asked = { ...login.asked, identity, identityProvider: "" };
  const { token } = await context.exchanger.exchange(asked, vouched.idToken, request.remoteAddress);
  return answerToken(login, token, undefined);
}

async function signInAndAnswer(tx: Tx, context: LoginContext, concluding: LoginCompletion): Promise<WebAnswer> {
  const { clock, ids } = context;
  const { login, provider, request, decisions } = concluding;
  const nowMs = clock();
  const signedIn = await signIn(tx, signInRequestOf(context, concluding), { ids, nowMs });
  const { identityUid, mappings, informative } = signedIn;
  if (decisions !== undefined) {
    await applyBindingDecisions(tx, { identityUid, decisions }, { ids, nowMs, method: request.path, request });
  }
  const refresh = getsRefreshToken(login, provider);
  const known: SignedInFor = { identityUid, mappings, informative, asked: login.asked, refresh, atMs: nowMs };
  const answer = await answered(tx, context, concluding, known);
  await audit(tx, context, concluding, signedIn, nowMs);
  return answer;
}

async function answered(
  tx: Tx,
  context: LoginContext,
  { login, provider, vouched, browser }: LoginCompletion,
  known: SignedInFor,
): Promise<WebAnswer> {
  const { tickets, tokens, origin } = context;
  const { to, challenge = "" } = login;
  const { idToken } = vouched;
  const nowMs = known.atMs;
  switch (to.kind) {
    case "code": {
      const code = newSecret();
      const { clientId, redirectUri } = to;
      const issued = { used: false, clientId, redirectUri, challenge, login: known } as const;
      await tickets.put(tx, "code", code, issued, nowMs + CODE_MS);
      return answerCode(context, to, { code });
    }
    case "redirect": {
      const grant = grantFor(known, origin().audiences);
      const refresh = known.refresh ? await tokens.newRefreshToken(tx, known.identityUid, grant, nowMs) : undefined;
      return answerToken(login, tokens.issue(known.identityUid, grant, nowMs).token, refresh);
    }
    case "headless": {
      if (!(await isHeadlessOpen(tx, to.key, nowMs))) return failed(context, to, loginOver());
      const outcome =
        provider.providerUid === undefined
          ? idToken
          : JSON.stringify({ id_token: idToken, identity_provider: provider.providerUid });
      await answerHeadlessSession(tx, to.key, outcome, nowMs);
      const text = "The terminal has access now. You can close this page and go back to it.";
      return donePage({ host: hostOf(context) }, "Signed in", text);
    }
    case "device": {
      const approval = newSecret();
      const { userCode, asker } = to;
      const outcome = { login: known, idToken };
      const pending = { stage: "approval", browser, userCode, asker, person: nameOf(vouched), outcome } as const;
      await tickets.put(tx, "authorization", approval, pending, nowMs + LOGIN_MS);
      return redirect(`/activate?approval=${approval}`);
    }
  }
}

// Published clients ask with "true" where they want a token or an error; what stays is what there is.
function answerToken({ to }: LoginRequest, token: string, refreshToken: string | undefined): WebAnswer {
  if (to.kind !== "redirect") throw new TypeError("only logins with redirect are answered with a token");
  return redirect(withParameters(to.url, { token, refresh_token: refreshToken }, ["refresh_token", "error"]));
}

async function audit(
  tx: Tx,
  { ids }: LoginContext,
  { provider, request }: LoginCompletion,
  { identityUid, group }: SignedIn,
  nowMs: number,
): Promise<void> {
  const isNew = (await tx.identities.get(identityUid))?.createTimeMs === nowMs;
  if (!isNew && group === undefined) return;
  const subjectUid = group ?? (provider.providerUid === undefined ? identityUid : rootOf(provider.providerUid));
  await tx.audit.append({
    rootUid: rootOf(subjectUid),
    timeMs: nowMs,
    type: REGISTERED,
    method: CALLBACK,
    subjectUid,
    actorUid: identityUid,
    tokenId: "",
    requestId: ids.newId(),
    remoteAddress: request.remoteAddress ?? "",
  });
}

/** What to call somebody who signed in: the address or name that the provider gave. */
export function nameOf({ claims, subject }: Vouched): string {
  const name = [claims.email, claims.preferred_username, claims.name].find(
    (one) => typeof one === "string" && one !== "",
  );
  return String(name ?? subject).slice(0, 255);
}
