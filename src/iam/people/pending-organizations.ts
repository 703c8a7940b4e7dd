// The pending bindings of a person by organisation, for the page on which the person decides about them. Anybody
// can bind anybody in any number of organisations, so every function reads and changes a bounded number of rows.
import type { Change } from "../../kernel/audit-body.js";
import { builtinRoleUid } from "../../kernel/ids.js";
import { rootOf } from "../../kernel/uidp.js";
import { describeChange } from "../../pipeline/body.js";
import { groupKind } from "../../store/iam/groups.js";
import { identityKind } from "../../store/iam/identities.js";
import { roleBindingKind } from "../../store/iam/role-bindings.js";
import type { Tx } from "../../store/transaction.js";
import { requireOwner } from "../rights.js";
import { roleBindingToProto, roleBindingView } from "../role-bindings/role-binding.js";
import { acceptBindingsAt, describeBindings, MAX_ACCEPTED } from "./pending-bindings.js";

/** The largest number of organisations on one page. */
export const MAX_ORGANISATIONS = 10;
/** The largest number of organisations that are counted. */
const MAX_COUNTED = 100;
/** The largest number of bindings that are counted in one organisation, and of roles that are named. */
const MAX_BINDINGS = 20;
const MAX_ROLES = 3;

const owner = builtinRoleUid("owner");

/** An organisation in which bindings of a person are pending. */
export interface PendingOrganisation {
  readonly uid: string;
  readonly name: string;
  /** Whether the operator has verified the name. */
  readonly verified: boolean;
  readonly bindings: BoundedCount;
  /** The distinct names of their roles; not all where there are many. */
  readonly roles: readonly string[];
  readonly hasMoreRoles: boolean;
  /** Whether the person can remove them; false where the organisation would be left without an owner. */
  readonly isRemovable: boolean;
}

export interface BoundedCount {
  readonly count: number;
  /** Whether there are more. */
  readonly isMore: boolean;
}

/** The organisations that a page shows. */
export interface PendingOrganisations {
  readonly organisations: readonly PendingOrganisation[];
  /** How many others have pending bindings. */
  readonly others: BoundedCount;
}

/** Whether any binding of a person is pending. */
export async function hasPendingBindings(tx: Tx, identityUid: string): Promise<boolean> {
  return (await tx.table(roleBindingKind).findPendingRoots(identityUid, 1)).length > 0;
}

/**
 * Lists the organisations in which bindings of a person are pending, at most {@link MAX_ORGANISATIONS}.
 *
 * @param except the uid of an organisation to leave out
 */
export async function listPendingOrganisations(
  tx: Tx,
  identityUid: string,
  except: string | undefined,
): Promise<PendingOrganisations> {
  const found = await tx.table(roleBindingKind).findPendingRoots(identityUid, MAX_COUNTED + 1);
  const roots = found.slice(0, MAX_COUNTED).filter((root) => root !== except);
  const organisations: PendingOrganisation[] = [];
  for (const root of roots.slice(0, MAX_ORGANISATIONS)) {
    organisations.push(await describeOrganisation(tx, identityUid, root));
  }
  return {
    organisations,
    others: { count: roots.length - organisations.length, isMore: found.length > MAX_COUNTED },
  };
}

async function describeOrganisation(tx: Tx, identityUid: string, root: string): Promise<PendingOrganisation> {
  const group = await tx.table(groupKind).find(root);
  const rows = await readPendingAt(tx, identityUid, root, MAX_BINDINGS + 1);
  const roles = [...new Set(rows.slice(0, MAX_BINDINGS).map(({ roleName }) => roleName))];
  const isMore = rows.length > MAX_BINDINGS;
  return {
    uid: root,
    name: group?.name ?? "",
    verified: group?.verified ?? false,
    bindings: { count: isMore ? MAX_BINDINGS : rows.length, isMore },
    roles: roles.slice(0, MAX_ROLES),
    hasMoreRoles: isMore || roles.length > MAX_ROLES,
    isRemovable: !(await isOnlyOwner(tx, identityUid, root)),
  };
}

async function isOnlyOwner(tx: Tx, identityUid: string, root: string): Promise<boolean> {
  if ((await tx.table(roleBindingKind).findSame(root, identityUid, owner)) === undefined) return false;
  // A person who is not registered yet does not count as a holder.
  const self = (await tx.table(identityKind).find(identityUid)) === undefined ? 0 : 1;
  return (await tx.table(roleBindingKind).countHolders(root, owner)) <= self;
}

/** The decisions of a person about pending bindings, by the uid of the organisation. */
export type BindingDecisions = ReadonlyMap<string, "accept" | "remove">;

/** The result of a decision. */
export interface ResolvedBindings {
  readonly root: string;
  readonly decision: "accept" | "remove";
  /** What the audit log gets: nothing where no binding was pending any more. */
  readonly changes: readonly { readonly subjectUid: string; readonly change: Change }[];
}

/**
 * Accepts or deletes pending bindings of one person. All decisions together change at most {@link MAX_ACCEPTED}
 * bindings, of which each organisation gets an equal share; the others stay pending.
 *
 * @throws ApiError FAILED_PRECONDITION where an organisation would be left without an owner.
 */
export async function resolvePendingBindings(
  tx: Tx,
  identityUid: string,
  decisions: BindingDecisions,
): Promise<ResolvedBindings[]> {
  const share = Math.max(1, Math.floor(MAX_ACCEPTED / Math.max(1, decisions.size)));
  const resolved: ResolvedBindings[] = [];
  for (const [root, decision] of decisions) {
    const resolve = decision === "accept" ? acceptPendingAt : deletePendingAt;
    resolved.push({ root, decision, changes: await resolve(tx, identityUid, root, share) });
  }
  return resolved;
}

type Changes = ResolvedBindings["changes"];

// One change for all, because there may be many.
async function acceptPendingAt(tx: Tx, identityUid: string, root: string, limit: number): Promise<Changes> {
  const uids = await acceptBindingsAt(tx, identityUid, root, "consent", limit);
  const [subjectUid] = uids;
  return subjectUid === undefined ? [] : [{ subjectUid, change: await describeBindings(tx, "after", uids) }];
}

async function deletePendingAt(tx: Tx, identityUid: string, root: string, limit: number): Promise<Changes> {
  const rows = await readPendingAt(tx, identityUid, root, limit);
  for (const { uid } of rows) await tx.table(roleBindingKind).delete(uid);
  if (rows.some(({ roleUid, groupUid }) => roleUid === owner && groupUid === root)) await requireOwner(tx, root);
  return rows.map((row) => {
    return { subjectUid: row.uid, change: describeChange(roleBindingView, { before: roleBindingToProto(row) }) };
  });
}

// The rows continue in the next organisation, so they are filtered.
async function readPendingAt(tx: Tx, identityUid: string, root: string, limit: number) {
  const rows = await tx.table(roleBindingKind).findByPending(identityUid, true, root, limit);
  return rows.filter(({ groupUid }) => rootOf(groupUid) === root);
}
