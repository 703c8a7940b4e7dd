// Decisions on pending role bindings at login: the form fields of the consent page, and what they change.

import { BINDING_ACCEPTED, BINDING_DELETED } from "../../iam/people/pending-bindings.js";
import {
  type BindingDecisions,
  MAX_ORGANISATIONS,
  type PendingOrganisation,
  type PendingOrganisations,
  resolvePendingBindings,
} from "../../iam/people/pending-organizations.js";
import { type Change, formatBody } from "../../kernel/audit-body.js";
import { invalidArgument } from "../../kernel/errors.js";
import { rootOf } from "../../kernel/uidp.js";
import type { WebRequest } from "../../kernel/web.js";
import type { AuditRow } from "../../store/tables/audit.js";
import type { Tx } from "../../store/transaction.js";
import { type Html, html } from "./html.js";

const FIELD_PREFIX = "bindings-";
const ROOT_UID = /^[0-9a-f]{40}$/;

/** The name of the form field with the decision for an organisation. */
function decisionField(root: string): string {
  return `${FIELD_PREFIX}${root}`;
}

/**
 * Parses the decisions in a form. Organisations with the decision `later` are left out.
 *
 * @throws ApiError INVALID_ARGUMENT for fields and values that the page does not have, and for too many fields
 */
export function parseBindingDecisions(form: URLSearchParams): BindingDecisions {
  const decisions = new Map<string, "accept" | "remove">();
  const fields = [...form].filter(([field]) => field.startsWith(FIELD_PREFIX));
  if (fields.length > MAX_ORGANISATIONS)
    rejectForm(`there may be at most ${MAX_ORGANISATIONS} fields for organisations`);
  const roots = new Set<string>();
  for (const [field, value] of fields) {
    const root = field.slice(FIELD_PREFIX.length);
    if (!ROOT_UID.test(root)) rejectForm(`a field must be ${FIELD_PREFIX} and the uid of an organisation`);
    if (roots.has(root)) rejectForm("an organisation may be decided on once");
    roots.add(root);
    if (value === "accept" || value === "remove") decisions.set(root, value);
    else if (value !== "later") rejectForm("the decision on an organisation must be accept, later or remove");
  }
  return decisions;
}

function rejectForm(rule: string): never {
  throw invalidArgument({ field: "bindings", subject: "", rule });
}

/**
 * Applies a person's decisions. Appends one audit row for each organisation whose bindings were accepted, and one for
 * each deleted binding.
 *
 * @throws ApiError FAILED_PRECONDITION when an organisation would lose its last owner
 */
export async function applyBindingDecisions(
  tx: Tx,
  { identityUid, decisions }: { readonly identityUid: string; readonly decisions: BindingDecisions },
  context: AuditContext,
): Promise<void> {
  for (const { decision, changes } of await resolvePendingBindings(tx, identityUid, decisions)) {
    const type = decision === "accept" ? BINDING_ACCEPTED : BINDING_DELETED;
    for (const change of changes) await appendLoginRow(tx, { type, actorUid: identityUid, ...change }, context);
  }
}

/** The request that an audit row records. */
interface AuditContext {
  readonly nowMs: number;
  /** The path of the page. */
  readonly method: string;
  readonly request: Pick<WebRequest, "remoteAddress" | "requestId" | "traceId">;
}

/** Appends an audit row to the log of the organisation of `subjectUid`, for what a login changed. */
export async function appendLoginRow(
  tx: Tx,
  { change, ...row }: Pick<AuditRow, "type" | "subjectUid" | "actorUid"> & { readonly change: Change },
  { nowMs, method, request }: AuditContext,
): Promise<void> {
  await tx.audit.append({
    ...row,
    body: formatBody(change, row.type),
    rootUid: rootOf(row.subjectUid),
    timeMs: nowMs,
    method,
    tokenId: "",
    requestId: request.requestId,
    traceId: request.traceId,
    remoteAddress: request.remoteAddress ?? "",
  });
}

// The section of the consent page about pending role bindings. People choose names freely, so names are truncated and
// isolated from the direction of the text around them.

/** The longest organisation name and role name that the page shows, in characters. */
const MAX_NAME = 64;
const MAX_ROLE_NAME = 32;

/** Renders the section with one select for each organisation; undefined where there is none. It is part of a form. */
export function renderPendingBindings({ organisations, others }: PendingOrganisations): Html | undefined {
  if (organisations.length === 0) return undefined;
  return html`<h2>Roles that others gave you</h2>
<p>You have not accepted these roles yet. Accept only what you expect: what you accept is in your lists and tokens,
and those who see role bindings there see your name and address.</p>
${organisations.map(renderOrganisationSelect)}
${others.count > 0 ? renderOthers(others) : undefined}`;
}

function renderOrganisationSelect(organisation: PendingOrganisation, index: number): Html {
  const { uid, name, verified, isRemovable } = organisation;
  const [id, hint] = [`organisation-${index}`, `roles-${index}`];
  const unverified = html` <span class="note">(a name that nobody has verified)</span>`;
  const lastOwner = html` You are its only owner, so this cannot be removed.`;
  return html`<label for="${id}">${truncate(name, MAX_NAME)}${verified ? undefined : unverified}</label>
<p class="hint" id="${hint}">${formatRoles(organisation)}${isRemovable ? undefined : lastOwner}</p>
<select id="${id}" name="${decisionField(uid)}" aria-describedby="${hint}" autocomplete="off">
<option value="later" selected>Not now</option>
<option value="accept">Accept</option>
${isRemovable ? html`<option value="remove">Remove</option>` : undefined}
</select>
`;
}

function formatRoles({ roles, hasMoreRoles, bindings }: PendingOrganisation): Html {
  const names = roles.map((role, index) => html`${index === 0 ? undefined : ", "}${truncate(role, MAX_ROLE_NAME)}`);
  const counted = `${bindings.isMore ? "more than " : ""}${bindings.count} role ${bindings.count === 1 ? "binding" : "bindings"}`;
  return html`${roles.length === 1 ? "Role" : "Roles"} ${names}${hasMoreRoles ? " and others" : undefined}: ${counted}.`;
}

function renderOthers({ count, isMore }: PendingOrganisations["others"]): Html {
  const waiting = count === 1 ? "organisation waits" : "organisations wait";
  return html`<p class="hint">${isMore ? "More than " : undefined}${String(count)} other ${waiting}.
<code>arbor auth bindings list</code> lists them all.</p>`;
}

function truncate(name: string, length: number): Html {
  const characters = [...name];
  return html`<bdi>${characters.length > length ? `${characters.slice(0, length).join("")}…` : name}</bdi>`;
}
