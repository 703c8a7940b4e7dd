// Groups, version 1: a view of GroupsService.
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { type DeleteGroupRequest, type Group, GroupSchema, Groups } from "#gen/chainguard/platform/iam/group_pb.js";
import type { GroupsService, Group as GroupV2 } from "#gen/chainguard/platform/iam/v2beta1/groups_pb.js";
import { limitsFor, type QuotaLimits } from "../../kernel/quotas.js";
import { defineBodies } from "../../pipeline/body.js";
import type { UnaryCall } from "../../pipeline/call.js";
import { type Handlers, listInChunks, withOutcome, withPreparation } from "../../pipeline/handlers.js";
import { type ServedService, serve } from "../../pipeline/method-table.js";
import { createOperations } from "../../pipeline/operations.js";
import {
  defineFixedFields,
  requireCreated,
  requireUpdated,
  setByOperator,
  setByService,
} from "../../pipeline/resource/fixed-fields.js";
import { findsResource, getResource } from "../../pipeline/resource/read.js";
import { createChunkReader } from "../../pipeline/resource/unpaginated-list.js";
import type { GroupRow } from "../../store/iam/groups.js";
import { groups, groupToProto, operatorFields } from "./group.js";
import { deleteExpiredInvites, type GroupsDeps } from "./group-v2beta1.js";

const fullMask = { paths: ["name", "description"] };
const fixed = defineFixedFields(GroupSchema, {
  ...operatorFields,
  resourceLimits: setByOperator("arbor admin quotas set"),
  status: setByService(),
});

/** Creates Groups of version 1. */
export function groupsV1(
  served: ServedService<typeof GroupsService>,
  { store, limits }: Pick<GroupsDeps, "store"> & { readonly limits: QuotaLimits },
) {
  const v2 = createOperations(served, { uid: "id", groupUid: "groupId" });
  const toProto = (row: GroupRow) => groupToProtoV1(row, limits);
  const get = (uid: string, { tx }: UnaryCall) => getResource(tx, groups, uid, toProto);
  const handlers: Handlers<typeof Groups> = {
    async create({ parent, group }, call) {
      const { uid } = await v2.createGroup({ parent: parent === "/" ? "" : parent, group: groupFromV1(group) }, call);
      return requireCreated(fixed, group, await get(uid, call));
    },

    async update(group, call) {
      const { uid } = await v2.updateGroup({ group: groupFromV1(group), updateMask: fullMask }, call);
      return requireUpdated(fixed, group, await get(uid, call));
    },

    list: listInChunks(createChunkReader(groups, toProto)),

    delete: withPreparation({
      prepare: ({ id }: DeleteGroupRequest, { startMs }) => deleteExpiredInvites(id, startMs, store),
      handle: ({ id }: DeleteGroupRequest, call) => v2.deleteGroup({ uid: id }, call),
    }),

    async lookupGroup(_, call) {
      const { group } = await v2.lookupGroup({}, call);
      return group ? { group: await get(group.uid, call) } : {};
    },

    async requestGroupAccess({ groupId }, call) {
      await v2.requestGroupAccess({ groupUid: groupId }, call);
      return withOutcome({}, { subjectUid: groupId });
    },

    checkEligibility: async (_, call) => ({ eligible: (await v2.checkEligibility({}, call)).eligible }),
  };
  const view = { message: GroupSchema, readers: [Groups.method.list] } as const;
  const bodies = defineBodies(view, findsResource(groups, toProto));
  return serve(Groups, handlers, {
    create: { allowEmptyPath: true, body: bodies.created },
    update: { body: bodies.updated },
    delete: { body: bodies.deleted },
  });
}

// The fields that callers set.
function groupFromV1({ id, name, description }: Partial<Group> = {}) {
  return { uid: id ?? "", name: name ?? "", description: description ?? "" };
}

/**
 * Converts a stored group to version 1: a root group shows some of the quotas of its organisation.
 *
 * @param limits the quotas of organisations that have none of their own
 */
export function groupToProtoV1(row: GroupRow, limits: QuotaLimits): Group {
  if (row.parentUid !== null) return fromV2(groupToProto(row), {});
  const { providers: idps, repos: repositories } = limitsFor(row.resourceLimits, limits);
  return fromV2(groupToProto(row), { idps, repositories });
}

function fromV2({ uid, createTime, updateTime, ...same }: GroupV2, resourceLimits: Group["resourceLimits"]): Group {
  const { name, description, verified, kind, status } = same;
  const view: MessageInitShape<typeof GroupSchema> = {
    ...{ id: uid, name, description, resourceLimits, verified, kind, status },
    ...(createTime && { createdAt: createTime }),
    ...(updateTime && { updatedAt: updateTime }),
  };
  return create(GroupSchema, view);
}
