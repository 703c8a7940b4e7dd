// What others gave a person, organisation by organisation, for a page that asks
// what to do with it. Anybody can bind anybody, in as many organisations as they
// can make: everything here reads and changes a bounded number of rows.
import { builtinRoleUid } from "../../kernel/ids.js";
import { rootOf } from "../../kernel/uidp.js";
import type { Tx } from "../../store/port.js";
import { requireOwner } from "../rights.js";
import { acceptBindingsAt, MAX_ACCEPTED } from "./pending-bindings.js";

/** How many organisations a person is asked about at a time. */
export const MAX_ORGANIZATIONS = 10;
/** How many organisations are counted at most. */
const MAX_COUNTED = 100;
/** How many bindings are counted in one organisation at most, and how many of their roles are named. */
const MAX_BINDINGS = 20;
const MAX_ROLES = 3;

const owner = builtinRoleUid("owner");

/** An organisation in which bindings of a person are pending. */
export interface PendingOrganization {
  readonly uid: string;
  readonly name: string;
  /** Whether the operator verified that the name is theirs. */
  readonly verified: boolean;
  readonly bindings: Counted;
  /** The names of their roles, each once; not all where there are many. */
  readonly roles: readonly string[];
  readonly hasMoreRoles: boolean;
  /** Whether the person can give them up: not where the organisation would be left without an owner. */
  readonly isRemovable: boolean;
}

/** How many there are. */
export interface Counted {
  readonly count: number;
  /** Whether there are more than were counted. */
  readonly isMore: boolean;
}

/** The organisations that a person is asked about. */
export interface PendingOrganizations {
  readonly organizations: readonly PendingOrganization[];
  /** How many others wait. */
  readonly others: Counted;
}

/** Whether any binding of a person is pending. */
export async function hasPendingBindings(tx: Tx, identityUid: string): Promise<boolean> {
  return (await tx.roleBindings.pendingRoots(identityUid, 1)).length > 0;
}

/**
 * The organisations in which bindings of a person are pending, at most {@link MAX_ORGANIZATIONS}.
 *
 * @param except the uid of an organisation to leave out
 */
export async function listPendingOrganizations(
  tx: Tx,
  identityUid: string,
  except: string | undefined,
): Promise<PendingOrganizations> {
  const found = await tx.roleBindings.pendingRoots(identityUid, MAX_COUNTED + 1);
  const roots = found.slice(0, MAX_COUNTED).filter((root) => root !== except);
  const organizations: PendingOrganization[] = [];
  for (const root of roots.slice(0, MAX_ORGANIZATIONS)) {
    organizations.push(await describeOrganization(tx, identityUid, root));
  }
  return {
    organizations,
    others: { count: roots.length - organizations.length, isMore: found.length > MAX_COUNTED },
  };
}

async function describeOrganization(tx: Tx, identityUid: string, root: string): Promise<PendingOrganization> {
  const group = await tx.groups.get(root);
  const rows = await pendingAt(tx, identityUid, root, MAX_BINDINGS + 1);
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
  if ((await tx.roleBindings.same(root, identityUid, owner)) === undefined) return false;
  // Somebody who is about to become known is no holder yet.
  const self = (await tx.identities.get(identityUid)) === undefined ? 0 : 1;
  return (await tx.roleBindings.holders(root, owner)) <= self;
}

/** What a person decided about the pending bindings in organisations, by the uid of each. */
export type BindingDecisions = ReadonlyMap<string, "accept" | "remove">;

/** What became of the bindings in one organisation. */
export interface ResolvedBindings {
  readonly root: string;
  readonly decision: "accept" | "remove";
  /** The uids of the bindings; none where nothing was pending any more. */
  readonly uids: readonly string[];
}

/**
 * Accepts or deletes pending bindings of a person, and none of anybody else. All decisions together change at most
 * {@link MAX_ACCEPTED} bindings, of which each organisation gets an equal share; the others stay pending.
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
    const uids =
      decision === "accept"
        ? await acceptBindingsAt(tx, identityUid, root, share)
        : await deletePendingAt(tx, identityUid, root, share);
    resolved.push({ root, decision, uids });
  }
  return resolved;
}

async function deletePendingAt(tx: Tx, identityUid: string, root: string, limit: number): Promise<string[]> {
  const rows = await pendingAt(tx, identityUid, root, limit);
  for (const { uid } of rows) await tx.roleBindings.delete(uid);
  if (rows.some(({ roleUid, groupUid }) => roleUid === owner && groupUid === root)) await requireOwner(tx, root);
  return rows.map(({ uid }) => uid);
}

// The rows go on in the next organisation where this one has fewer.
async function pendingAt(tx: Tx, identityUid: string, root: string, limit: number) {
  const rows = await tx.roleBindings.byPending(identityUid, true, root, limit);
  return rows.filter(({ groupUid }) => rootOf(groupUid) === root);
}
