// GroupInvites, version 1: a view of GroupInvitesService.
import { create } from "@bufbuild/protobuf";
import { UIDPFilterSchema } from "#gen/chainguard/platform/common/uidp_pb.js";
import {
  type GroupInvite,
  type GroupInviteFilter,
  GroupInviteSchema,
  GroupInvites,
  type StoredGroupInvite,
  StoredGroupInviteSchema,
} from "#gen/chainguard/platform/iam/group_invites_pb.js";
import type {
  GroupInvitesService,
  GroupInvite as GroupInviteV2,
} from "#gen/chainguard/platform/iam/v2beta1/group_invites_pb.js";
import { unimplemented } from "../../kernel/errors.js";
import { timestampOf } from "../../kernel/time.js";
import { unavailableInvitesV1 } from "../../kernel/unavailable-methods.js";
import { defineBodies } from "../../pipeline/body.js";
import { type Handlers, listInChunks } from "../../pipeline/handlers.js";
import { type ServedService, serve } from "../../pipeline/method-table.js";
import { createOperations } from "../../pipeline/operations.js";
import { findsResource } from "../../pipeline/resource/read.js";
import { requireUidFilter } from "../../pipeline/resource/rules.js";
import { type ChunkFilter, createChunkReader } from "../../pipeline/resource/unpaginated-list.js";
import { type GroupInviteRow, groupInviteKind } from "../../store/iam/group-invites.js";
import { roleKind } from "../../store/iam/roles.js";
import type { ListPosition } from "../../store/lists/query.js";
import { formatCapabilityNames } from "../roles/capability-names.js";
import { groupInvites, groupInviteToProto } from "./group-invite.js";

// Never the code, and no more than published events have.
const bodies = defineBodies(
  { message: GroupInviteSchema, readers: [GroupInvites.method.list], only: ["id", "expiration"] },
  findsResource(groupInvites, (row) => toProtoV1(groupInviteToProto(row, undefined), row)),
);

const readInvites = createChunkReader(
  groupInvites,
  async (row, { tx }) => toStoredProtoV1(groupInviteToProto(row, await tx.table(roleKind).find(row.roleUid)), row),
  parseFilter,
);

/** Creates GroupInvites of version 1. */
export function groupInvitesV1(served: ServedService<typeof GroupInvitesService>) {
  const v2 = createOperations(served, { uid: "id", parent: "group", roleUid: "role" });
  const handlers: Handlers<typeof GroupInvites> = {
    async create({ group, role, ttl, email, singleUse }, call) {
      const groupInvite = { roleUid: role, email, singleUse, ...(ttl && { ttl }) };
      const created = await v2.createGroupInvite({ parent: group, groupInvite }, call);
      return toProtoV1(created, await call.tx.table(groupInviteKind).find(created.uid));
    },

    // A root group always has an owner, and callers grant only rights that they hold. A root group whose only
    // owner is an invite would break both rules.
    createWithGroup() {
      throw unimplemented(`GroupInvites.CreateWithGroup: ${unavailableInvitesV1.createWithGroup}`);
    },

    list: listInChunks(async (filter: GroupInviteFilter, call, after: ListPosition | undefined) => {
      const { chunk, next } = await readInvites(filter, call, after);
      return { chunk: { items: await Promise.all(chunk.items) }, next };
    }),

    delete: ({ id }, call) => v2.deleteGroupInvite({ uid: id }, call),
  };
  return serve(GroupInvites, handlers, {
    create: { body: bodies.created },
    createWithGroup: { body: bodies.created },
    delete: { body: bodies.deleted },
  });
}

function parseFilter({ id, keyId, group }: GroupInviteFilter): ChunkFilter {
  const uidp = create(UIDPFilterSchema, { childrenOf: requireUidFilter("group", group) });
  return { request: { id, uidp }, ...(keyId !== "" && { equals: { keyId } }) };
}

/** The times of an invite; version 2 does not show when it was updated. */
type Times = Pick<GroupInviteRow, "createTimeMs" | "updateTimeMs"> | undefined;

// The response to the creation has the code.
function toProtoV1(invite: GroupInviteV2, row: Times): GroupInvite {
  return create(GroupInviteSchema, { ...toSharedFields(invite, row), code: invite.code });
}

// Lists show no code.
function toStoredProtoV1(invite: GroupInviteV2, row: Times): StoredGroupInvite {
  const { email, singleUse } = invite;
  return create(StoredGroupInviteSchema, { ...toSharedFields(invite, row), email, singleUse });
}

function toSharedFields({ uid, expirationTime, keyId, role, createTime }: GroupInviteV2, row: Times) {
  const updatedAt = row && timestampOf(Math.max(row.createTimeMs, row.updateTimeMs));
  return {
    ...{ id: uid, keyId },
    ...(expirationTime && { expiration: expirationTime }),
    ...(role && {
      role: {
        ...{ id: role.uid, name: role.name, description: role.description },
        capabilities: formatCapabilityNames(role.capabilities),
      },
    }),
    ...(createTime && { createdAt: createTime }),
    ...(updatedAt && { updatedAt }),
  };
}
