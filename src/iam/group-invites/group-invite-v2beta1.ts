// The handlers of GroupInvitesService in version 2beta1.
import { create } from "@bufbuild/protobuf";
import {
  type GroupInvite,
  GroupInviteSchema,
  GroupInvitesService,
} from "#gen/chainguard/platform/iam/v2beta1/group_invites_pb.js";
import { withoutChange } from "../../pipeline/handlers.js";
import { serve } from "../../pipeline/method-table.js";
import { buildPatch, buildValues } from "../../pipeline/resource/patch.js";
import { getRow, type ResourceDeps } from "../../pipeline/resource/read.js";
import type { GroupInviteRow, Tx } from "../../store/port.js";
import { groups } from "../groups/group.js";
import { requireGrantable } from "../rights.js";
import { requireAvailableRole } from "../roles/role.js";
import { createInviteCode, durationToMs, groupInvites, groupInviteToProto } from "./group-invite.js";

/** Creates GroupInvitesService. */
export function groupInvitesV2beta1({ listResources, ids }: Pick<ResourceDeps, "listResources" | "ids">) {
  return serve(GroupInvitesService, {
    async getGroupInvite({ uid }, { tx }) {
      return toProto(await getRow(tx, groupInvites, uid), tx);
    },

    async listGroupInvites(request, call) {
      const { resources, ...page } = await listResources(call, groupInvites, request, (row) => toProto(row, call.tx));
      return { groupInvites: resources, ...page };
    },

    async createGroupInvite({ parent, groupInvite }, call) {
      const { tx, caller, startMs } = call;
      await getRow(tx, groups, parent);
      const { email, ttl, singleUse } = buildValues(groupInvites, groupInvite);
      const role = await requireAvailableRole(groupInvite?.roleUid ?? "", parent, tx, "roleUid");
      requireGrantable(caller, role, parent);
      const { code, ...key } = createInviteCode(parent);
      const row: GroupInviteRow = {
        uid: ids.newUid(parent),
        groupUid: parent,
        roleUid: role.uid,
        email,
        singleUse,
        ...key,
        createdBy: caller.uid,
        expireTimeMs: startMs + (ttl ? durationToMs(ttl) : 0),
        createTimeMs: startMs,
        updateTimeMs: startMs,
      };
      await tx.groupInvites.insert(row);
      return groupInviteToProto(row, role, code);
    },

    // The code stays valid. A new time to live counts from now.
    async updateGroupInvite({ groupInvite, updateMask }, { tx, caller, startMs }) {
      const before = await getRow(tx, groupInvites, groupInvite?.uid ?? "");
      const { email, singleUse, roleUid } = before;
      const { ttl, ...patch } = buildPatch(
        groupInvites,
        groupInvite,
        updateMask,
        create(GroupInviteSchema, { email, singleUse, roleUid }),
      );
      // Somebody who changes the address of an invite could accept it and gain its role.
      const role = await requireAvailableRole(before.roleUid, before.groupUid, tx, "roleUid");
      requireGrantable(caller, role, before.groupUid);
      if (ttl === undefined && Object.keys(patch).length === 0) return withoutChange(groupInviteToProto(before, role));
      const row = {
        ...before,
        ...patch,
        updateTimeMs: startMs,
        ...(ttl && { expireTimeMs: startMs + durationToMs(ttl) }),
      };
      await tx.groupInvites.replace(row);
      return groupInviteToProto(row, role);
    },

    // Deletion is idempotent, because clients repeat it.
    async deleteGroupInvite({ uid }, { tx }) {
      await tx.groupInvites.delete(uid);
      return {};
    },
  });
}

async function toProto(row: GroupInviteRow, tx: Tx): Promise<GroupInvite> {
  return groupInviteToProto(row, await tx.roles.find(row.roleUid));
}
