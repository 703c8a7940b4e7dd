// What a group is: its fields and their rules, what keeps it from being
// deleted, and how it shows in version 2 of the API.
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { type Group, GroupSchema } from "#gen/chainguard/platform/iam/v2beta1/groups_pb.js";
import { defineResource } from "../../resource/define.js";
import type { DeleteGuard } from "../../resource/guard-delete.js";
import { isDescription, isName } from "../../resource/rules.js";
import type { GroupRow } from "../../store/port.js";

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
  { children: "groups", any: (tx, uid) => tx.groups.hasChildren(uid) },
  { children: "identities", any: (tx, uid) => tx.identities.anyIn(uid) },
  {
    children: "identity providers",
    any: async (tx, uid) => (await tx.identityProviders.uidsWhere("groupUid", uid, 1)).length > 0,
  },
  { children: "roles", any: (tx, uid) => tx.roles.anyIn(uid) },
  { children: "role bindings", any: (tx, uid) => tx.roleBindings.anyGranted(uid) },
];

/** A stored group as version 2 shows it. */
export function groupView(row: GroupRow): Group {
  return {
    $typeName: "chainguard.platform.iam.v2beta1.Group",
    uid: row.uid,
    name: row.name,
    description: row.description,
    resourceLimits: { ...row.resourceLimits },
    verified: row.verified,
    createTime: timestampFromMs(row.createTimeMs),
    updateTime: timestampFromMs(row.updateTimeMs),
    kind: row.kind,
    status: 0,
  };
}
