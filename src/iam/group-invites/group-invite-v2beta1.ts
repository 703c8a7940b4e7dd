// The handlers of GroupInvitesService in version 2beta1.
import { create } from "@bufbuild/protobuf";
import {
  type GroupInvite,
  GroupInviteSchema,
  GroupInvitesService,
} from "#gen/chainguard/platform/iam/v2beta1/group_invites_pb.js";
import { notFound } from "../../kernel/errors.js";
import { serve } from "../../pipeline/method-table.js";
import { listQueryOf } from "../../pipeline/resource/list-query.js";
import { patchOf, valuesOf } from "../../pipeline/resource/patch.js";
import type { GroupInviteRow, Tx } from "../../store/port.js";
import { requireParentGroup } from "../groups/parent-group.js";
import type { IamDeps } from "../iam-deps.js";
import { requireGrantable } from "../rights.js";
import { requireAvailableRole } from "../roles/available-role.js";
import { groupInvites, groupInviteView, millisecondsOf, newInviteCode } from "./group-invite.js";

/** GroupInvitesService, ready to be served. */
export function groupInvitesV2beta1({ tokens, ids }: IamDeps) {
  return serve(GroupInvitesService, {
    async getGroupInvite({ uid }, { tx }) {
      return viewOf(await found(uid, tx), tx);
    },

    async listGroupInvites(request, call) {
      const { tx, startMs } = call;
      const equals = request.keyId === "" ? {} : { equals: { keyId: request.keyId } };
      const context = {
        method: "ListGroupInvites",
        tokens,
        nowMs: startMs,
        visible: await call.visibleGroups(request.uidp),
        ...equals,
      };
      const list = listQueryOf(groupInvites, request, context);
      const page = await tx.groupInvites.list(list.query);
      const views: GroupInvite[] = [];
      for (const row of page.rows) views.push(await viewOf(row, tx));
      return { groupInvites: views, ...list.envelope(page) };
    },

    async createGroupInvite({ parent, groupInvite }, call) {
      const { tx, caller, startMs } = call;
      await requireParentGroup(parent, call);
      const { email, ttl, singleUse } = valuesOf(groupInvites, groupInvite);
      const role = await requireAvailableRole(groupInvite?.roleUid ?? "", parent, tx, "roleUid");
      requireGrantable(caller, role, parent);
      const { code, ...key } = newInviteCode(parent);
      const row: GroupInviteRow = {
        uid: ids.newUid(parent),
        groupUid: parent,
        roleUid: role.uid,
        email,
        singleUse,
        ...key,
        createdBy: caller.uid,
        expireTimeMs: startMs + (ttl ? millisecondsOf(ttl) : 0),
        createTimeMs: startMs,
        updateTimeMs: startMs,
      };
      await tx.groupInvites.insert(row);
      return groupInviteView(row, role, code);
    },

    // The code stays good; a new time to live counts from now.
    async updateGroupInvite({ groupInvite, updateMask }, { tx, caller, startMs }) {
      const before = await found(groupInvite?.uid ?? "", tx);
      const { email, singleUse } = before;
      const { ttl, ...patch } = patchOf(
        groupInvites,
        groupInvite,
        updateMask,
        create(GroupInviteSchema, { email, singleUse }),
      );
      // Whoever redirects an invite could accept it, and so gain its role.
      const role = await requireAvailableRole(before.roleUid, before.groupUid, tx, "roleUid");
      requireGrantable(caller, role, before.groupUid);
      const row = {
        ...before,
        ...patch,
        updateTimeMs: startMs,
        ...(ttl && { expireTimeMs: startMs + millisecondsOf(ttl) }),
      };
      await tx.groupInvites.replace(row);
      return groupInviteView(row, role);
    },

    // What is not there needs no deleting: clients repeat deletions.
    async deleteGroupInvite({ uid }, { tx }) {
      await tx.groupInvites.delete(uid);
      return {};
    },
  });
}

async function found(uid: string, tx: Tx): Promise<GroupInviteRow> {
  const row = await tx.groupInvites.get(uid);
  if (row === undefined) throw notFound(groupInvites, uid);
  return row;
}

async function viewOf(row: GroupInviteRow, tx: Tx): Promise<GroupInvite> {
  return groupInviteView(row, await tx.roles.get(row.roleUid));
}
