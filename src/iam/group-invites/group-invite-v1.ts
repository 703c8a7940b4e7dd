// GroupInvites, version 1: a view of GroupInvitesService.
import { create } from "@bufbuild/protobuf";
import { UIDPFilterSchema } from "#gen/chainguard/platform/common/uidp_pb.js";
import { type GroupInviteFilter, GroupInvites } from "#gen/chainguard/platform/iam/group_invites_pb.js";
import type { GroupInvitesService } from "#gen/chainguard/platform/iam/v2beta1/group_invites_pb.js";
import { unimplemented } from "../../kernel/errors.js";
import { listInChunks, type ServedService, serve } from "../../pipeline/method-table.js";
import { operationsOf } from "../../pipeline/operations.js";
import { type Asked, rowsInParts } from "../../pipeline/resource/whole-list.js";
import { groupOf } from "../groups/group-filter.js";
import { groupInviteView } from "./group-invite.js";
import { groupInviteV1, storedGroupInviteV1 } from "./group-invite-v1-view.js";

/** GroupInvites, ready to be served. */
export function groupInvitesV1(served: ServedService<typeof GroupInvitesService>) {
  const v2 = operationsOf(served, { uid: "id", parent: "group", roleUid: "role" });
  return serve(GroupInvites, {
    async create({ group, role, ttl, email, singleUse }, call) {
      const groupInvite = { roleUid: role, email, singleUse, ...(ttl && { ttl }) };
      const made = await v2.createGroupInvite({ parent: group, groupInvite }, call);
      return groupInviteV1(made, await call.tx.groupInvites.get(made.uid));
    },

    // A root group belongs to whoever creates it and must keep an owner, and nobody can give what they
    // do not hold: a root without an owner, with an invite to own it, would need rules of its own.
    createWithGroup() {
      throw unimplemented(
        "GroupInvites.CreateWithGroup: a root group needs an owner; create it, then an invite into it",
      );
    },

    list: listInChunks(
      rowsInParts(
        (tx) => tx.groupInvites,
        async (row, { tx }) => storedGroupInviteV1(groupInviteView(row, await tx.roles.get(row.roleUid)), row),
        asked,
      ),
    ),

    delete: ({ id }, call) => v2.deleteGroupInvite({ uid: id }, call),
  });
}

function asked({ id, keyId, ...filter }: GroupInviteFilter): Asked {
  const uidp = create(UIDPFilterSchema, { childrenOf: groupOf(filter) });
  return { request: { id, uidp }, ...(keyId !== "" && { equals: { keyId } }) };
}
