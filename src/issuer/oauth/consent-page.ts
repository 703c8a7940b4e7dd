// Asking somebody who signed in what to do with it: what they would be granted
// and by whom, and which program would get access in their name.

import type { InvitePreview } from "../../iam/people/accept-invite.js";
import type { PendingOrganizations } from "../../iam/people/pending-organizations.js";
import type { WebAnswer } from "../../kernel/web.js";
import type { TokenRequest } from "../sts/token-request.js";
import { type Html, html } from "./html.js";
import { pageAnswer } from "./page.js";
import { type Frame, type Hidden, hiddenInputs } from "./pages.js";
import { pendingSection } from "./pending-section.js";
import type { Destination } from "./state.js";

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
