// Groups, version 1: a view of GroupsService.
import { type DeleteGroupRequest, type Group, Groups } from "#gen/chainguard/platform/iam/group_pb.js";
import type { GroupsService } from "#gen/chainguard/platform/iam/v2beta1/groups_pb.js";
import { rowsInParts } from "../../resource/whole-list.js";
import { inParts, prepared, type ServedService, serve } from "../../rpc/method-table.js";
import { operationsOf } from "../../rpc/operations.js";
import { groupRowV1, groupV1 } from "./group-v1-view.js";
import { deleteEndedInvites, type GroupsDeps } from "./group-v2beta1.js";

const whole = { paths: ["name", "description"] };

/** Groups, ready to be served. */
export function groupsV1(served: ServedService<typeof GroupsService>, { store }: Pick<GroupsDeps, "store">) {
  const v2 = operationsOf(served, { uid: "id", groupUid: "groupId" });
  return serve(Groups, {
    create: async ({ parent, group }, call) =>
      groupV1(await v2.createGroup({ parent: parent === "/" ? "" : parent, group: sent(group) }, call)),

    update: async (group, call) => groupV1(await v2.updateGroup({ group: sent(group), updateMask: whole }, call)),

    list: inParts(rowsInParts((tx) => tx.groups, groupRowV1)),

    delete: prepared({
      prepare: ({ id }: DeleteGroupRequest, { startMs }) => deleteEndedInvites(id, startMs, store),
      handle: ({ id }: DeleteGroupRequest, call) => v2.deleteGroup({ uid: id }, call),
    }),

    async lookupGroup(_, call) {
      const { group } = await v2.lookupGroup({}, call);
      return group ? { group: groupV1(group) } : {};
    },

    requestGroupAccess: ({ groupId }, call) => v2.requestGroupAccess({ groupUid: groupId }, call).then(() => ({})),

    checkEligibility: async (_, call) => ({ eligible: (await v2.checkEligibility({}, call)).eligible }),
  });
}

// What version 1 sends of a group; the rest is not the caller's to set.
function sent({ id, name, description }: Partial<Group> = {}) {
  return { uid: id ?? "", name: name ?? "", description: description ?? "" };
}
