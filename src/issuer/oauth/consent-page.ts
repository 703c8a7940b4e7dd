// The consent page: what the person would be granted and by whom, and which program would get access.
import type { InvitePreview } from "../../iam/people/accept-invite.js";
import type { PendingOrganisations } from "../../iam/people/pending-organizations.js";
import type { WebResponse } from "../../kernel/web.js";
import type { TokenRequest } from "../sts/token-request.js";
import { showsCode } from "./headless.js";
import { type Html, html } from "./html.js";
import { renderPage } from "./page.js";
import { type Hidden, type PageFrame, renderHiddenInputs } from "./pages.js";
import { renderPendingBindings } from "./pending-bindings.js";
import type { Destination } from "./state.js";

interface ConsentPage {
  /** Who signed in. */
  readonly person: string;
  /** The invites that the person would accept. */
  readonly invites: readonly InvitePreview[];
  /** The pending role bindings that the person decides on; undefined where nobody signs in. */
  readonly pending?: PendingOrganisations | undefined;
  readonly recipient: Recipient;
  readonly hidden: Hidden;
}

interface Recipient {
  readonly to: Destination;
  readonly isConsole: boolean;
  readonly scope: TokenRequest;
  /** Whether the program gets a refresh token. */
  readonly refresh: boolean;
  /** The uid of the identity that the program would act as, instead of the person. */
  readonly identity: string | undefined;
}

/** Renders the page. Nothing is granted or delivered before its form is sent. */
export function renderConsentPage(
  frame: PageFrame,
  { person, invites, pending, recipient, hidden }: ConsentPage,
): WebResponse {
  const isInvite = invites.length > 0;
  const isByHost = invites.every(({ invitedBy }) => invitedBy.isHost);
  const condition = ` and know who ${isByHost ? "runs this service" : "invites you"}`;
  const body = html`<dl>
<dt>You are</dt><dd>${person}</dd>
</dl>
${invites.map(renderInvite)}
${recipient.isConsole ? html`<p>You go on to the console of this service.</p>` : renderRecipient(recipient, isInvite)}
<form method="post" action="/oauth/consent">${renderHiddenInputs(hidden)}
${pending && renderPendingBindings(pending)}
<p>Go on only if you started this yourself just now${isInvite ? condition : undefined}.</p>
<div class="buttons">
<button class="button plain" name="decision" value="decline">${isInvite ? "Decline" : "Cancel"}</button>
<button class="button" name="decision" value="accept">${isInvite ? "Accept" : "Continue"}</button>
</div>
</form>`;
  return renderPage({ ...frame, title: titleOf(isInvite, recipient), body, formLeadsTo: programUrl(recipient.to) });
}

function titleOf(isInvite: boolean, { isConsole }: Recipient): string {
  if (isInvite) return "Accept this invite?";
  return isConsole ? "Sign in to the console?" : "Give a program access?";
}

function renderInvite({ invitedBy, organisation, groupName, role }: InvitePreview): Html {
  const { name, description, capabilities } = role;
  const unverified = html` <span class="note">(a name that nobody has verified)</span>`;
  return html`<h2>What you are invited to</h2>
<dl>
<dt>Invited by</dt><dd>${formatInviter(invitedBy)}</dd>
<dt>Organisation</dt><dd>${organisation.name}${organisation.verified ? undefined : unverified}</dd>
${groupName === undefined ? undefined : html`<dt>Group</dt><dd>${groupName}</dd>`}
<dt>Role</dt><dd>${name}${description === "" ? undefined : html` <span class="note">${description}</span>`}</dd>
</dl>
<details>
<summary>What the role allows (${String(capabilities.length)})</summary>
<ul class="rights">${capabilities.map((capability) => html`<li>${capability}</li>`)}</ul>
</details>`;
}

// Persons choose their names freely. Without a verified email address the uid tells them apart. The uid of an identity of
// the host would tell nobody anything.
function formatInviter({ uid, name, email, isHost }: InvitePreview["invitedBy"]): Html {
  if (isHost) return html`who runs this service <span class="note">with arbor bootstrap, on its host</span>`;
  const proven = email === "" ? uid : email;
  return name === "" ? html`${proven}` : html`${name} <span class="note">${proven}</span>`;
}

function renderRecipient({ to, scope, refresh, identity }: Recipient, isInvite: boolean): Html {
  const { cap, scopes } = scope;
  return html`<h2>${isInvite ? "What gets access then" : "What gets access"}</h2>
<dl>
<dt>Program</dt><dd>${programName(to)}</dd>
<dt>It may act</dt><dd>${identity === undefined ? "in your name" : `as the identity ${identity}`}</dd>
<dt>Rights</dt><dd>${cap.length === 0 ? "all of them" : cap.join(", ")}</dd>
${scopes.length === 0 ? undefined : html`<dt>In groups</dt><dd>${scopes.join(", ")}</dd>`}
<dt>For</dt><dd>${refresh ? "30 days, unless ended before" : "an hour"}</dd>
</dl>`;
}

function programName(to: Destination): Html {
  switch (to.kind) {
    case "code":
      return html`${to.clientId} <span class="note">on this computer, at ${new URL(to.redirectUri).host}</span>`;
    case "redirect":
      return html`a program on this computer <span class="note">at ${new URL(to.url).host}</span>`;
    case "headless":
      if (showsCode(to)) return html`the terminal whose code you typed`;
      return html`${to.clientId ?? "a program"} <span class="note">on another computer</span>`;
    case "device":
      return html`${to.asker.clientId}`;
  }
}

function programUrl(to: Destination): string | undefined {
  if (to.kind === "code") return to.redirectUri;
  return to.kind === "redirect" ? to.url : undefined;
}
