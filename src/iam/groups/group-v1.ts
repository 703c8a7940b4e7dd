// Groups, version 1: a view of GroupsService.
import { type DeleteGroupRequest, type Group, Groups } from "#gen/chainguard/platform/iam/group_pb.js";
import type { GroupsService } from "#gen/chainguard/platform/iam/v2beta1/groups_pb.js";
import { notFound } from "../../kernel/errors.js";
import type { QuotaLimits } from "../../kernel/quotas.js";
import type { UnaryCall } from "../../pipeline/call.js";
import { listInChunks, type ServedService, serve, withOutcome, withPreparation } from "../../pipeline/method-table.js";
import { operationsOf } from "../../pipeline/operations.js";
import { rowsInParts } from "../../pipeline/resource/whole-list.js";
import { groups } from "./group.js";
import { groupRowV1 } from "./group-v1-view.js";
import { deleteEndedInvites, type GroupsDeps } from "./group-v2beta1.js";

const whole = { paths: ["name", "description"] };

/** Groups, ready to be served. */
export function groupsV1(
  served: ServedService<typeof GroupsService>,
  { store, limits }: Pick<GroupsDeps, "store"> & { readonly limits: QuotaLimits },
) {
  const v2 = operationsOf(served, { uid: "id", groupUid: "groupId" });
  const shown = async (uid: string, { tx }: UnaryCall) => {
    const row = await tx.groups.get(uid);
    if (row === undefined) throw notFound(groups, uid);
    return groupRowV1(row, limits);
  };
  return serve(Groups, {
    async create({ parent, group }, call) {
      const { uid } = await v2.createGroup({ parent: parent === "/" ? "" : parent, group: sent(group) }, call);
      return shown(uid, call);
    },

    async update(group, call) {
      const { uid } = await v2.updateGroup({ group: sent(group), updateMask: whole }, call);
      return shown(uid, call);
    },

    list: listInChunks(
      rowsInParts(
        (tx) => tx.groups,
        (row) => groupRowV1(row, limits),
      ),
    ),

    delete: withPreparation({
      prepare: ({ id }: DeleteGroupRequest, { startMs }) => deleteEndedInvites(id, startMs, store),
      handle: ({ id }: DeleteGroupRequest, call) => v2.deleteGroup({ uid: id }, call),
    }),

    async lookupGroup(_, call) {
      const { group } = await v2.lookupGroup({}, call);
      return group ? { group: await shown(group.uid, call) } : {};
    },

    async requestGroupAccess({ groupId }, call) {
      await v2.requestGroupAccess({ groupUid: groupId }, call);
      return withOutcome({}, { subjectUid: groupId });
    },

    checkEligibility: async (_, call) => ({ eligible: (await v2.checkEligibility({}, call)).eligible }),
  });
}

// What version 1 sends of a group; the rest is not the caller's to set.
function sent({ id, name, description }: Partial<Group> = {}) {
  return { uid: id ?? "", name: name ?? "", description: description ?? "" };
}
