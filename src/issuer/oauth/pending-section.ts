// The part of a page that asks somebody what to do with roles that others gave
// them. Names are whatever somebody chose, so they are cut, and set apart from
// the text around them in their direction of writing.
import type { PendingOrganization, PendingOrganizations } from "../../iam/people/pending-organizations.js";
import { decisionField } from "./binding-decisions.js";
import { type Html, html } from "./html.js";

/** How many characters of the name of an organisation are shown, and of a role. */
const MAX_NAME = 64;
const MAX_ROLE_NAME = 32;

/** The section, with one choice for each organisation; nothing where none waits. It is part of a form. */
export function pendingSection({ organizations, others }: PendingOrganizations): Html | undefined {
  if (organizations.length === 0) return undefined;
  return html`<h2>Roles that others gave you</h2>
<p>You have not accepted these roles yet. Accept only what you expect: what you accept is in your lists and tokens.</p>
${organizations.map(organizationChoice)}
${others.count > 0 ? othersNote(others) : undefined}`;
}

function organizationChoice(organization: PendingOrganization, index: number): Html {
  const { uid, name, verified, isRemovable } = organization;
  const [id, hint] = [`organisation-${index}`, `roles-${index}`];
  const unverified = html` <span class="note">(a name that nobody has verified)</span>`;
  const kept = html` You are its only owner, so this cannot be removed.`;
  return html`<label for="${id}">${shortened(name, MAX_NAME)}${verified ? undefined : unverified}</label>
<p class="hint" id="${hint}">${rolesOf(organization)}${isRemovable ? undefined : kept}</p>
<select id="${id}" name="${decisionField(uid)}" aria-describedby="${hint}" autocomplete="off">
<option value="later" selected>Not now</option>
<option value="accept">Accept</option>
${isRemovable ? html`<option value="remove">Remove</option>` : undefined}
</select>
`;
}

function rolesOf({ roles, hasMoreRoles, bindings }: PendingOrganization): Html {
  const names = roles.map((role, index) => html`${index === 0 ? undefined : ", "}${shortened(role, MAX_ROLE_NAME)}`);
  const counted = `${bindings.isMore ? "more than " : ""}${bindings.count} role ${bindings.count === 1 ? "binding" : "bindings"}`;
  return html`${roles.length === 1 ? "Role" : "Roles"} ${names}${hasMoreRoles ? " and others" : undefined}: ${counted}.`;
}

function othersNote({ count, isMore }: PendingOrganizations["others"]): Html {
  const waiting = count === 1 ? "organisation waits" : "organisations wait";
  return html`<p class="hint">${isMore ? "More than " : undefined}${String(count)} other ${waiting}.
<code>arbor auth bindings list</code> lists them all.</p>`;
}

function shortened(name: string, length: number): Html {
  const characters = [...name];
  return html`<bdi>${characters.length > length ? `${characters.slice(0, length).join("")}…` : name}</bdi>`;
}
