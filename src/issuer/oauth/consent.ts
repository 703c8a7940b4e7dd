// The person decides on a page whether to accept an invite and which program gets access. Without this page any other
// site could complete a login by navigation alone, where the browser is signed in at the provider already.
import { decodeJwt } from "jose";
import { parseInviteCode } from "../../iam/people/accept-invite.js";
import {
  type BindingDecisions,
  hasPendingBindings,
  listPendingOrganisations,
  type PendingOrganisations,
} from "../../iam/people/pending-organizations.js";
import { derivePersonUid } from "../../iam/people/registration.js";
import { previewSignIn } from "../../iam/people/sign-in.js";
import { rootOf } from "../../kernel/uidp.js";
import type { WebRequest, WebResponse } from "../../kernel/web.js";
import { identityKind } from "../../store/iam/identities.js";
import { isForConsole } from "../console/client.js";
import { inviteFailureKey } from "../sts/failure-limiter.js";
import { type Browser, findBrowser, LOGIN_MS, requireOwnForm } from "./browser.js";
import { buildSignIn, completeLogin, displayNameOf, getsRefreshToken, type LoginCompletion } from "./complete-login.js";
import { renderConsentPage } from "./consent-page.js";
import { hostOf, type LoginContext } from "./context.js";
import { isOAuthError, loginOverError, oauthError } from "./oauth-error.js";
import type { VerifiedIdToken } from "./oidc.js";
import { redirect } from "./page.js";
import { parseBindingDecisions } from "./pending-bindings.js";
import { getSentProvider } from "./provider-selection.js";
import { renderErrorPage, respondToFailedLogin, respondWithError } from "./responses.js";
import { findStart, originOfPerson } from "./start-limit.js";
import type { Authorization, SentTo } from "./state.js";
import { createSecret } from "./tickets.js";

export const CONSENT_PATH = "/oauth/consent";

type Consent = Extract<Authorization, { stage: "consent" }>;

/** A person whose ID token was verified, and the login request. */
type VerifiedLogin = Pick<LoginCompletion, "login" | "provider" | "verified">;

/**
 * Whether a login needs consent: it accepts an invite, its outcome goes to a program on a loopback port, the person has
 * pending role bindings, or the console would register a person. Whoever listens on the port may have made the link, and anybody can use the `client_id` of
 * another program (RFC 8252, section 8.6), so consent is asked for every time and is never remembered. For terminals
 * and devices a code was typed. The console is a page of this service, which takes only a code that it asked for.
 */
export async function needsConsent(context: LoginContext, completion: VerifiedLogin): Promise<boolean> {
  const { invite, to, identity } = completion.login;
  const isConsole = isForConsole(to, context.origin);
  if (invite !== undefined || to.kind === "redirect" || (to.kind === "code" && !isConsole)) return true;
  if (identity !== undefined) return false;
  const personUid = personUidOf(completion);
  const isUnsettled = await context.store.read(
    async (tx) =>
      (await hasPendingBindings(tx, personUid)) ||
      (isConsole && (await tx.table(identityKind).find(personUid)) === undefined),
  );
  if (isUnsettled) return true;
  return (await previewInvites(context, completion)).length > 0;
}

/**
 * Redirects the browser to the consent page.
 *
 * @throws ApiError when the login could not succeed, for example with a wrong invite
 */
export async function askForConsent(
  context: LoginContext,
  { login, provider, verified, browser, request }: LoginCompletion,
  sentTo: SentTo,
): Promise<WebResponse> {
  const { store, tickets, clock, inviteLimiter } = context;
  const limiterKeys = login.invite === undefined ? [] : [inviteFailureKey(request.remoteAddress, login.invite)];
  await inviteLimiter.guard(limiterKeys, () => previewInvites(context, { login, provider, verified }));
  const key = createSecret();
  const { idToken, added, isPartial } = verified;
  const personUid = personUidOf({ login, provider, verified });
  await store.write(async (tx) => {
    const revokeTimeMs = (await tx.table(identityKind).find(personUid))?.revokeTimeMs ?? 0;
    const asked = { browser, request: login, sentTo, idToken, added, isPartial, revokeTimeMs };
    const start = await findStart(tx, "authorization", originOfPerson(personUid), clock());
    await tickets.start(tx, "authorization", key, { stage: "consent", ...asked }, clock() + LOGIN_MS, start);
  });
  return redirect(`${CONSENT_PATH}?login=${key}`);
}

/** `GET /oauth/consent`: the page. */
export async function showConsent(context: LoginContext, request: WebRequest): Promise<WebResponse> {
  const { store, tickets, providers, clock, secure } = context;
  const key = request.query.get("login") ?? "";
  const browser = findBrowser(request, secure);
  const found = await store.read((tx) => tickets.find(tx, "authorization", key, clock()));
  if (browser === undefined || found?.stage !== "consent" || found.browser !== browser.hash) {
    return renderErrorPage(context, loginOverError());
  }
  try {
    const { request: login } = found;
    const provider = await getSentProvider(providers, found.sentTo);
    if (isOAuthError(provider)) return renderErrorPage(context, provider);
    const verified = decodeVerifiedToken(found);
    return renderConsentPage(
      { host: hostOf(context), cookie: browser.cookie },
      {
        person: displayNameOf(verified),
        invites: await previewInvites(context, { login, provider, verified }),
        pending: await listPending(context, { login, provider, verified }),
        recipient: {
          to: login.to,
          isConsole: isForConsole(login.to, context.origin),
          scope: login.asked,
          refresh: login.identity === undefined && getsRefreshToken(login, provider),
          identity: login.identity,
        },
        hidden: [
          ["login", key],
          ["form", browser.formSecret],
        ],
      },
    );
  } catch (error) {
    return renderErrorPage(context, error);
  }
}

/** `POST /oauth/consent`: the decision. */
export async function decideConsent(context: LoginContext, request: WebRequest): Promise<WebResponse> {
  const form = await request.form();
  const isAccepted = form.get("decision") === "accept";
  let found: Consent | undefined;
  let decisions: BindingDecisions | undefined;
  try {
    const browser = requireOwnForm(form, findBrowser(request, context.secure));
    // Parsed before the login is taken, so that the person can correct a wrong form.
    decisions = isAccepted ? parseBindingDecisions(form) : undefined;
    found = await takeConsent(context, form.get("login") ?? "", browser);
  } catch (error) {
    return renderErrorPage(context, error);
  }
  if (found === undefined) return renderErrorPage(context, loginOverError());
  const { request: login, browser } = found;
  if (!isAccepted) {
    return respondWithError(context, login.to, oauthError("access_denied", "the login was declined", 403));
  }
  try {
    const provider = await getSentProvider(context.providers, found.sentTo);
    if (isOAuthError(provider)) return respondWithError(context, login.to, provider);
    return await completeLogin(context, {
      login,
      provider,
      verified: decodeVerifiedToken(found),
      browser,
      request,
      decisions,
      revokeTimeMs: found.revokeTimeMs ?? 0,
    });
  } catch (error) {
    return respondToFailedLogin(context, login.to, error);
  }
}

// Deletes the state first, so that one consent has one effect.
function takeConsent({ store, tickets, clock }: LoginContext, key: string, browser: Browser) {
  return store.write(async (tx) => {
    const found = await tickets.find(tx, "authorization", key, clock());
    if (found?.stage !== "consent" || found.browser !== browser.hash) return undefined;
    await tickets.delete(tx, key);
    return found;
  });
}

// A login that assumes an identity grants nothing; the token exchange decides.
async function previewInvites(context: LoginContext, completion: VerifiedLogin) {
  if (completion.login.identity !== undefined) return [];
  const { store, clock } = context;
  const invite = await store.read((tx) => previewSignIn(tx, buildSignIn(context, completion), clock()));
  return invite === undefined ? [] : [invite];
}

// Accepting an invite also accepts the pending bindings in its organisation, so the page does not ask for them.
async function listPending(
  { store }: LoginContext,
  completion: VerifiedLogin,
): Promise<PendingOrganisations | undefined> {
  const { identity, invite } = completion.login;
  if (identity !== undefined) return undefined;
  const group = invite === undefined ? undefined : parseInviteCode(invite)?.group;
  const except = group === undefined ? undefined : rootOf(group);
  return store.read((tx) => listPendingOrganisations(tx, personUidOf(completion), except));
}

function personUidOf({ provider, verified }: VerifiedLogin): string {
  const { issuer, providerUid } = provider;
  return derivePersonUid({
    issuer,
    subject: verified.subject,
    provider: providerUid === undefined ? undefined : { uid: providerUid },
  });
}

function decodeVerifiedToken({ idToken, added = {}, isPartial = false }: Consent): VerifiedIdToken {
  const claims = decodeJwt(idToken);
  return { idToken, subject: claims.sub ?? "", claims: { ...claims, ...added }, added, isPartial };
}
