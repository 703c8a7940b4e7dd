// What somebody who signs in decides about roles that others gave them: the form
// fields of the page that asks, and what becomes of the bindings.
import {
  type BindingDecisions,
  MAX_ORGANIZATIONS,
  type PendingOrganization,
  type PendingOrganizations,
  resolvePendingBindings,
} from "../../iam/people/pending-organizations.js";
import { invalidArgument } from "../../kernel/errors.js";
import type { Ids } from "../../kernel/ids.js";
import type { WebRequest } from "../../kernel/web.js";
import type { Tx } from "../../store/port.js";
import { type Html, html } from "./page.js";

const PREFIX = "bindings-";
const ROOT = /^[0-9a-f]{40}$/;

/** The name of the form field for what is to become of the pending bindings in an organisation. */
export function decisionField(root: string): string {
  return `${PREFIX}${root}`;
}

/**
 * Reads the decisions in a form; organisations with the decision `later` are left out.
 *
 * @throws ApiError INVALID_ARGUMENT for fields and values that the page does not have, or more than it has.
 */
export function parseBindingDecisions(form: URLSearchParams): BindingDecisions {
  const decisions = new Map<string, "accept" | "remove">();
  const fields = [...form].filter(([field]) => field.startsWith(PREFIX));
  if (fields.length > MAX_ORGANIZATIONS) refuse(`there may be at most ${MAX_ORGANIZATIONS} fields for organisations`);
  const roots = new Set<string>();
  for (const [field, value] of fields) {
    const root = field.slice(PREFIX.length);
    if (!ROOT.test(root)) refuse(`a field must be ${PREFIX} and the uid of an organisation`);
    if (roots.has(root)) refuse("an organisation may be decided on once");
    roots.add(root);
    if (value === "accept" || value === "remove") decisions.set(root, value);
    else if (value !== "later") refuse("the decision on an organisation must be accept, later or remove");
  }
  return decisions;
}

function refuse(description: string): never {
  throw invalidArgument({ field: "bindings", description });
}

/**
 * Does what a person decided about pending bindings, with a row in the audit log for each organisation whose bindings
 * were accepted, and for each binding that was deleted.
 *
 * @throws ApiError FAILED_PRECONDITION where an organisation would be left without an owner.
 */
export async function applyBindingDecisions(
  tx: Tx,
  { identityUid, decisions }: { readonly identityUid: string; readonly decisions: BindingDecisions },
  { ids, nowMs, method, request }: AuditContext,
): Promise<void> {
  for (const { root, decision, uids } of await resolvePendingBindings(tx, identityUid, decisions)) {
    const isAccepted = decision === "accept";
    for (const subjectUid of isAccepted ? uids.slice(0, 1) : uids) {
      await tx.audit.append({
        rootUid: root,
        timeMs: nowMs,
        type: `dev.arbor.bindings.binding.${isAccepted ? "accepted" : "dropped"}.v1`,
        method,
        subjectUid,
        actorUid: identityUid,
        tokenId: "",
        requestId: ids.newId(),
        remoteAddress: request.remoteAddress ?? "",
      });
    }
  }
}

/** What the audit log tells of how it was done. */
export interface AuditContext {
  readonly ids: Ids;
  readonly nowMs: number;
  /** The path of the page. */
  readonly method: string;
  readonly request: Pick<WebRequest, "remoteAddress">;
}

// The part of a page that asks somebody what to do with roles that others gave
// them. Names are whatever somebody chose, so they are cut, and set apart from
// the text around them in their direction of writing.

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
