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
import type { InvitePreview } from "../../iam/people/preview-invite.js";
import { uidOf } from "../../iam/people/registration.js";
import { previewSignIn } from "../../iam/people/sign-in.js";
import { rootOf } from "../../kernel/uidp.js";
import type { WebAnswer, WebRequest } from "../../kernel/web.js";
import { inviteFailureKey } from "../sts/failure-limiter.js";
import type { TokenRequest } from "../sts/token-request.js";
import { completeLogin, getsRefreshToken, type LoginCompletion, nameOf, signInRequestOf } from "./complete-login.js";
import { hostOf, type LoginContext } from "./context.js";
import { failure, isFailure, loginOver } from "./oauth-error.js";
import type { Vouched } from "./oidc.js";
import { type Html, html, pageAnswer, redirect } from "./page.js";
import { type Frame, type Hidden, hiddenInputs } from "./pages.js";
import { parseBindingDecisions, pendingSection } from "./pending-bindings.js";
import { findSentTo } from "./provider-selection.js";
import { failed, failedLogin, refusedPage } from "./responses.js";
import {
  type Authorization,
  type Browser,
  type Destination,
  knownBrowserOf,
  LOGIN_MS,
  newSecret,
  requireOwnForm,
  type SentTo,
} from "./state.js";

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
  return uidOf({
    issuer,
    subject: vouched.subject,
    provider: providerUid === undefined ? undefined : { uid: providerUid },
  });
}

function vouchedIn({ idToken }: Consent): Vouched {
  const claims = decodeJwt(idToken);
  return { idToken, subject: claims.sub ?? "", claims };
}

// Asking somebody who signed in what to do with it: what they would be granted
// and by whom, and which program would get access in their name.

/** What the page asks about. */
export interface ConsentPage {
  /** Who signed in. */
  readonly person: string;
  /** What would be granted. A list, since a person may be offered more than the invite that the link brought. */
  readonly grants: readonly InvitePreview[];
  /** Roles that others gave the person, who decides about them here; undefined where nobody signs in. */
  readonly pending?: PendingOrganizations | undefined;
  readonly recipient: Recipient;
  readonly hidden: Hidden;
}

/** Who gets access, and to what. */
export interface Recipient {
  readonly to: Destination;
  readonly scope: TokenRequest;
  /** Whether it may renew its access. */
  readonly refresh: boolean;
  /** The uid of the identity it would get access as, in place of the person. */
  readonly identity: string | undefined;
}

/** The page. Nothing is granted or handed over before its form is sent. */
export function consentPage(frame: Frame, { person, grants, pending, recipient, hidden }: ConsentPage): WebAnswer {
  const isInvite = grants.length > 0;
  const body = html`<dl>
<dt>You are</dt><dd>${person}</dd>
</dl>
${grants.map(grantSection)}
<h2>${isInvite ? "What gets access then" : "What gets access"}</h2>
<dl>${recipientRows(recipient)}</dl>
<form method="post" action="/oauth/consent">${hiddenInputs(hidden)}
${pending && pendingSection(pending)}
<p>Go on only if you started this yourself just now${isInvite ? " and know who invites you" : undefined}.</p>
<div class="buttons">
<button class="button plain" name="decision" value="decline">${isInvite ? "Decline" : "Cancel"}</button>
<button class="button" name="decision" value="accept">${isInvite ? "Accept" : "Continue"}</button>
</div>
</form>`;
  const title = isInvite ? "Accept this invite?" : "Give a program access?";
  return pageAnswer({ ...frame, title, body, formLeadsTo: programUrl(recipient.to) });
}

function grantSection({ invitedBy, organisation, groupName, role }: InvitePreview): Html {
  const { name, description, capabilities } = role;
  const unverified = html` <span class="note">(a name that nobody has verified)</span>`;
  return html`<h2>What you are invited to</h2>
<dl>
<dt>Invited by</dt><dd>${inviter(invitedBy)}</dd>
<dt>Organisation</dt><dd>${organisation.name}${organisation.verified ? undefined : unverified}</dd>
${groupName === undefined ? undefined : html`<dt>Group</dt><dd>${groupName}</dd>`}
<dt>Role</dt><dd>${name}${description === "" ? undefined : html` <span class="note">${description}</span>`}</dd>
</dl>
<details>
<summary>What the role allows (${String(capabilities.length)})</summary>
<ul class="rights">${capabilities.map((capability) => html`<li>${capability}</li>`)}</ul>
</details>`;
}

// A name is whatever somebody called themselves: where no address was confirmed, the uid tells people apart.
function inviter({ uid, name, email }: InvitePreview["invitedBy"]): Html {
  const proven = email === "" ? uid : email;
  return name === "" ? html`${proven}` : html`${name} <span class="note">${proven}</span>`;
}

function recipientRows({ to, scope, refresh, identity }: Recipient): Html {
  const { cap, scopes } = scope;
  return html`<dt>Program</dt><dd>${programName(to)}</dd>
<dt>It may act</dt><dd>${identity === undefined ? "in your name" : `as the identity ${identity}`}</dd>
<dt>Rights</dt><dd>${cap.length === 0 ? "all of them" : cap.join(", ")}</dd>
${scopes.length === 0 ? undefined : html`<dt>In groups</dt><dd>${scopes.join(", ")}</dd>`}
<dt>For</dt><dd>${refresh ? "30 days, unless ended before" : "an hour"}</dd>`;
}

function programName(to: Destination): Html {
  switch (to.kind) {
    case "code":
      return html`${to.clientId} <span class="note">on this computer, at ${new URL(to.redirectUri).host}</span>`;
    case "redirect":
      return html`a program on this computer <span class="note">at ${new URL(to.url).host}</span>`;
    case "headless":
      return html`the terminal whose code you typed`;
    case "device":
      return html`${to.asker.clientId}`;
  }
}

function programUrl(to: Destination): string | undefined {
  if (to.kind === "code") return to.redirectUri;
  return to.kind === "redirect" ? to.url : undefined;
}
