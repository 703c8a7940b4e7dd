// The organisations of an installation and their identities, as the operator lists them on the host.
import { invalidArgument } from "../../kernel/errors.js";
import { ANONYMOUS_UID, builtinRoleUid } from "../../kernel/ids.js";
import { isUidp } from "../../kernel/uidp.js";
import { getRow } from "../../pipeline/resource/read.js";
import { type GroupRow, groupKind } from "../../store/iam/groups.js";
import { type IdentityRow, identityKind } from "../../store/iam/identities.js";
import { roleBindingKind } from "../../store/iam/role-bindings.js";
import type { Tx } from "../../store/transaction.js";
import { groups } from "../groups/group.js";
import { isHostIdentity } from "../identities/identity.js";

/** The largest numbers of owners and of roles that are read for one organisation or identity. */
const MAX_OWNERS = 10;
const MAX_GRANTS = 20;
/** How many organisations of one name are read. */
const MAX_NAMESAKES = 10;

/** What kind of identity it is: `host` has tokens from `arbor admin token` alone. */
export type MemberKind = "person" | "workload" | "anybody" | "host";

/** An identity of an organisation. */
export interface Member {
  readonly uid: string;
  /** Undefined for a person who is bound and has never signed in. */
  readonly row: IdentityRow | undefined;
  readonly kind: MemberKind;
  /** What it is bound to, at most {@link MAX_GRANTS}. */
  readonly grants: readonly { readonly groupUid: string; readonly roleUid: string; readonly roleName: string }[];
}

/** An organisation and its owners, at most {@link MAX_OWNERS}. */
export interface Organisation {
  readonly row: GroupRow;
  readonly owners: readonly Member[];
}

/** A page of a list: the rows after the uid `after`, at most `limit`. */
export interface MemberPage {
  readonly after: string;
  readonly limit: number;
}

/** Lists organisations in the order of their uids. */
export async function listOrganisations(tx: Tx, { after, limit }: MemberPage): Promise<Organisation[]> {
  return addOwners(tx, await tx.table(groupKind).listRoots(after, limit));
}

/** Finds the organisations of a name. Several may share it, because only verified names are unique. */
export async function findOrganisations(tx: Tx, name: string): Promise<Organisation[]> {
  return addOwners(tx, await tx.table(groupKind).findRootsNamed(name, MAX_NAMESAKES));
}

/**
 * Finds the uid of an organisation by its uid or its name.
 *
 * @throws ApiError NOT_FOUND for a uid, INVALID_ARGUMENT for a name that none or several have, whose uids it lists
 */
export async function resolveOrganisation(tx: Tx, org: string): Promise<string> {
  if (isUidp(org)) return (await getRow(tx, groups, org)).uid;
  const [found, ...others] = await tx.table(groupKind).findRootsNamed(org, MAX_NAMESAKES);
  if (found !== undefined && others.length === 0) return found.uid;
  const rule =
    found === undefined
      ? `no organisation is named ${org}; arbor admin organisations list lists them`
      : `several organisations are named ${org}: ${[found, ...others].map(({ uid }) => uid).join(", ")}`;
  throw invalidArgument({ field: "org", subject: "", rule });
}

/** Lists the identities that are in an organisation or bound in it, in the order of their uids. */
export async function listMembers(tx: Tx, rootUid: string, { after, limit }: MemberPage): Promise<Member[]> {
  const listed: Member[] = [];
  for (const uid of await tx.table(roleBindingKind).listMembers(rootUid, after, limit)) {
    listed.push(await readMember(tx, uid, rootUid));
  }
  return listed;
}

async function addOwners(tx: Tx, rows: readonly GroupRow[]): Promise<Organisation[]> {
  const listed: Organisation[] = [];
  for (const row of rows) {
    const owners: Member[] = [];
    for (const uid of await tx.table(roleBindingKind).findHolders(row.uid, builtinRoleUid("owner"), MAX_OWNERS)) {
      owners.push(await readMember(tx, uid, row.uid));
    }
    listed.push({ row, owners });
  }
  return listed;
}

// As `arbor members list`.
function findKind(uid: string, row: IdentityRow | undefined): MemberKind {
  if (uid === ANONYMOUS_UID) return "anybody";
  if (row !== undefined && isHostIdentity(row)) return "host";
  return uid.includes("/") ? "workload" : "person";
}

async function readMember(tx: Tx, uid: string, rootUid: string): Promise<Member> {
  const row = await tx.table(identityKind).find(uid);
  return {
    uid,
    row,
    kind: findKind(uid, row),
    grants: await tx.table(roleBindingKind).findGrantsWithin(uid, rootUid, MAX_GRANTS),
  };
}
