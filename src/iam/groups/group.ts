// What a group is: its fields and their rules, what keeps it from being
// deleted, and how it shows in version 2 of the API.
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { type Group, GroupSchema } from "#gen/chainguard/platform/iam/v2beta1/groups_pb.js";
import { builtinRoleUid } from "../../kernel/ids.js";
import { parentOf } from "../../kernel/uidp.js";
import { defineResource } from "../../pipeline/resource/define.js";
import type { DeleteGuard } from "../../pipeline/resource/guard-delete.js";
import { isDescription, isName } from "../../pipeline/resource/rules.js";
import type { GroupRow, RoleBindingRow, Tx } from "../../store/port.js";

const owner = builtinRoleUid("owner");

/** The group resource. `verified` and `kind` are not among what callers change: they are the operator's. */
export const groups = defineResource({
  noun: "group",
  type: "iam.chainguard.dev/Group",
  message: GroupSchema,
  sort: ["uid", "name", "created_at", "updated_at"],
  mutable: { name: isName, description: isDescription },
});

/** What keeps a group from being deleted, in the order errors name it. */
export const groupGuards: readonly DeleteGuard[] = [
  { children: "repos", any: async (tx, uid) => (await tx.repos.uidsWhere("groupUid", uid, 1)).length > 0 },
  { children: "advisories", any: async (tx, uid) => (await withdrawnOnlyIn(tx, uid)) === undefined },
  { children: "groups", any: (tx, uid) => tx.groups.hasChildren(uid) },
  { children: "identities", any: (tx, uid) => tx.identities.anyIn(uid) },
  {
    children: "identity providers",
    any: async (tx, uid) => (await tx.identityProviders.uidsWhere("groupUid", uid, 1)).length > 0,
  },
  { children: "roles", any: (tx, uid) => tx.roles.anyIn(uid) },
  {
    children: "role bindings",
    any: async (tx, uid) => (await tx.roleBindings.anyGranted(uid)) && !(await lastOwnerOf(tx, uid)),
  },
  // Those that have ended let nobody in any more, and go with the group.
  {
    children: "group invites",
    any: async (tx, uid, nowMs) => (await tx.groupInvites.byExpiry(uid, nowMs, true, 1)).length > 0,
  },
];

/**
 * The binding of the only owner of a root group, where it is the only binding there: it cannot be
 * deleted by itself, so it goes with the group.
 */
export async function lastOwnerOf(tx: Tx, uid: string): Promise<RoleBindingRow | undefined> {
  if (parentOf(uid) !== undefined) return undefined;
  const order = { field: "uid", descending: false };
  const { rows } = await tx.roleBindings.list({
    visible: [uid],
    filter: { childrenOf: uid },
    order,
    skip: 0,
    limit: 2,
  });
  const [only, another] = rows;
  return another === undefined && only?.roleUid === owner ? only : undefined;
}

/** So many withdrawn advisories go with a group; one with more is not empty. */
const MAX_WITHDRAWN = 1_000;

/** The advisories of a group, if all of them are withdrawn: what is withdrawn cannot be deleted by itself. */
export async function withdrawnOnlyIn(tx: Tx, uid: string): Promise<string[] | undefined> {
  const uids = await tx.advisories.uidsWhere("groupUid", uid, MAX_WITHDRAWN + 1);
  if (uids.length > MAX_WITHDRAWN) return undefined;
  for (const one of uids) if ((await tx.advisories.get(one))?.deleteTimeMs === null) return undefined;
  return uids;
}

/** A stored group as version 2 shows it. */
export function groupView(row: GroupRow): Group {
  return {
    $typeName: "chainguard.platform.iam.v2beta1.Group",
    uid: row.uid,
    name: row.name,
    description: row.description,
    // Version 1 tells of quotas; here the published contract shows none.
    resourceLimits: {},
    verified: row.verified,
    createTime: timestampFromMs(row.createTimeMs),
    updateTime: timestampFromMs(row.updateTimeMs),
    kind: row.kind,
    status: 0,
  };
}
