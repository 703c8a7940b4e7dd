// Between signing in and what comes of it: the person decides on a page of ours
// whether an invite is accepted and which program gets access. Without that,
// where the browser is signed in at the provider already, any page could lead
// it through a login by navigation alone.
import { decodeJwt } from "jose";
import { parseInviteCode } from "../../iam/people/accept-invite.js";
import {
  type BindingDecisions,
  hasPendingBindings,
  listPendingOrganizations,
  type PendingOrganizations,
} from "../../iam/people/pending-organizations.js";
import { derivePersonUid } from "../../iam/people/registration.js";
import { previewSignIn } from "../../iam/people/sign-in.js";
import { rootOf } from "../../kernel/uidp.js";
import type { WebAnswer, WebRequest } from "../../kernel/web.js";
import { inviteFailureKey } from "../invite-failures.js";
import { parseBindingDecisions } from "./binding-decisions.js";
import { type Browser, knownBrowserOf, LOGIN_MS, requireOwnForm } from "./browser.js";
import { completeLogin, getsRefreshToken, type LoginCompletion, nameOf, signInRequestOf } from "./complete-login.js";
import { consentPage } from "./consent-page.js";
import type { LoginContext } from "./context.js";
import { failed, failedLogin, refusedPage } from "./deliver.js";
import { hostOf } from "./deps.js";
import { failure, isFailure, loginOver } from "./failure.js";
import type { Vouched } from "./oidc.js";
import { redirect } from "./page.js";
import { findSentTo } from "./provider-selection.js";
import type { Authorization, SentTo } from "./state.js";
import { newSecret } from "./tickets.js";

/** The path of the page. */
export const CONSENT = "/oauth/consent";

type Consent = Extract<Authorization, { stage: "consent" }>;

/** Somebody whom a provider vouches for, and what their login is for. */
type Login = Pick<LoginCompletion, "login" | "provider" | "vouched">;

/**
 * Whether a login must be consented to: one that brings an invite, one that hands the tokens themselves to a program,
 * and one of a person who has yet to decide about roles that others gave them. Otherwise, where a program gets a code
 * it must have made the request itself to be able to use it; for terminals and devices a code was typed.
 */
export async function needsConsent({ store }: Pick<LoginContext, "store">, asked: Login): Promise<boolean> {
  const { invite, to, identity } = asked.login;
  if (invite !== undefined || to.kind === "redirect") return true;
  return identity === undefined && store.read((tx) => hasPendingBindings(tx, personUidOf(asked)));
}

/**
 * Leads the browser to the page.
 *
 * @throws ApiError for what could not succeed anyway, such as a wrong invite.
 */
export async function askForConsent(
  context: LoginContext,
  { login, provider, vouched, browser, request }: LoginCompletion,
  sentTo: SentTo,
): Promise<WebAnswer> {
  const { store, tickets, clock, guesses } = context;
  const counted = login.invite === undefined ? [] : [inviteFailureKey(request.remoteAddress, login.invite)];
  await guesses.guard(counted, () => grantsOf(context, { login, provider, vouched }));
  const key = newSecret();
  const consent: Consent = { stage: "consent", browser, request: login, sentTo, idToken: vouched.idToken };
  await store.write((tx) => tickets.put(tx, "authorization", key, consent, clock() + LOGIN_MS));
  return redirect(`${CONSENT}?login=${key}`);
}

/** `GET /oauth/consent`: the page. */
export async function showConsent(context: LoginContext, request: WebRequest): Promise<WebAnswer> {
  const { store, tickets, providers, clock, secure } = context;
  const key = request.query.get("login") ?? "";
  const browser = knownBrowserOf(request, secure);
  const found = await store.read((tx) => tickets.get(tx, "authorization", key, clock()));
  if (browser === undefined || found?.stage !== "consent" || found.browser !== browser.hash) {
    return refusedPage(context, loginOver());
  }
  try {
    const { request: login } = found;
    const provider = await findSentTo(providers, found.sentTo);
    if (isFailure(provider)) return refusedPage(context, provider);
    const vouched = vouchedIn(found);
    return consentPage(
      { host: hostOf(context), cookie: browser.cookie },
      {
        person: nameOf(vouched),
        grants: await grantsOf(context, { login, provider, vouched }),
        pending: await pendingOf(context, { login, provider, vouched }),
        recipient: {
          to: login.to,
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
    return refusedPage(context, error);
  }
}

/** `POST /oauth/consent`: the decision. */
export async function decideConsent(context: LoginContext, request: WebRequest): Promise<WebAnswer> {
  const form = await request.form();
  const isAccepted = form.get("decision") === "accept";
  let found: Consent | undefined;
  let decisions: BindingDecisions | undefined;
  try {
    const browser = requireOwnForm(form, knownBrowserOf(request, context.secure));
    // Before the login is taken, so that it can go on with a form that is in order.
    decisions = isAccepted ? parseBindingDecisions(form) : undefined;
    found = await takeConsent(context, form.get("login") ?? "", browser);
  } catch (error) {
    return refusedPage(context, error);
  }
  if (found === undefined) return refusedPage(context, loginOver());
  const { request: login, browser } = found;
  if (!isAccepted) {
    return failed(context, login.to, failure("access_denied", "the login was declined", 403));
  }
  try {
    const provider = await findSentTo(context.providers, found.sentTo);
    if (isFailure(provider)) return failed(context, login.to, provider);
    return await completeLogin(context, { login, provider, vouched: vouchedIn(found), browser, request, decisions });
  } catch (error) {
    return failedLogin(context, login.to, error);
  }
}

// Deleted before anything else, so that one consent has one effect.
function takeConsent({ store, tickets, clock }: LoginContext, key: string, browser: Browser) {
  return store.write(async (tx) => {
    const found = await tickets.get(tx, "authorization", key, clock());
    if (found?.stage !== "consent" || found.browser !== browser.hash) return undefined;
    await tickets.delete(tx, key);
    return found;
  });
}

// Whoever assumes an identity does not sign in: nothing is granted, and the exchange decides.
async function grantsOf(context: LoginContext, asked: Login) {
  if (asked.login.identity !== undefined) return [];
  const { store, clock } = context;
  const invite = await store.read((tx) => previewSignIn(tx, signInRequestOf(context, asked), clock()));
  return invite === undefined ? [] : [invite];
}

// What is pending in the organisation of an invite is accepted with the invite.
async function pendingOf({ store }: LoginContext, asked: Login): Promise<PendingOrganizations | undefined> {
  const { identity, invite } = asked.login;
  if (identity !== undefined) return undefined;
  const group = invite === undefined ? undefined : parseInviteCode(invite)?.group;
  const except = group === undefined ? undefined : rootOf(group);
  return store.read((tx) => listPendingOrganizations(tx, personUidOf(asked), except));
}

function personUidOf({ provider, vouched }: Login): string {
  const { issuer, providerUid } = provider;
  return derivePersonUid({
    issuer,
    subject: vouched.subject,
    provider: providerUid === undefined ? undefined : { uid: providerUid },
  });
}

function vouchedIn({ idToken }: Consent): Vouched {
  const claims = decodeJwt(idToken);
  return { idToken, subject: claims.sub ?? "", claims };
}
