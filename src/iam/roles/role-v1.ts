// Roles, version 1: a view of RolesService.
import { create } from "@bufbuild/protobuf";
import { UIDPFilterSchema } from "#gen/chainguard/platform/common/uidp_pb.js";
import { type Role, type RoleFilter, RoleSchema, Roles } from "#gen/chainguard/platform/iam/role_pb.js";
import type { RolesService, Role as RoleV2 } from "#gen/chainguard/platform/iam/v2beta1/roles_pb.js";
import { invalidArgument } from "../../kernel/errors.js";
import { isUidp } from "../../kernel/uidp.js";
import { defineBodies } from "../../pipeline/body.js";
import { type Handlers, listInChunks } from "../../pipeline/handlers.js";
import { type ServedService, serve } from "../../pipeline/method-table.js";
import { createOperations } from "../../pipeline/operations.js";
import { findsResource } from "../../pipeline/resource/read.js";
import { type ChunkFilter, createChunkReader } from "../../pipeline/resource/unpaginated-list.js";
import type { RoleRow } from "../../store/iam/roles.js";
import { formatCapabilityNames, parseCapabilities } from "./capability-names.js";
import { roles, roleToProto } from "./role.js";

const fullMask = { paths: ["name", "description", "capabilities"] };

const bodies = defineBodies({ message: RoleSchema, readers: [Roles.method.list] }, findsResource(roles, roleToProtoV1));

/** Creates Roles of version 1. */
export function rolesV1(served: ServedService<typeof RolesService>) {
  const v2 = createOperations(served, { uid: "id", parent: "parentId" });
  const handlers: Handlers<typeof Roles> = {
    create: async ({ parentId, role }, call) =>
      fromV2(await v2.createRole({ parent: parentId, role: fromV1(role) }, call)),

    update: async (role, call) => fromV2(await v2.updateRole({ role: fromV1(role), updateMask: fullMask }, call)),

    list: listInChunks(createChunkReader(roles, roleToProtoV1, parseFilter)),

    delete: ({ id }, call) => v2.deleteRole({ uid: id }, call),
  };
  return serve(Roles, handlers, {
    create: { body: bodies.created },
    update: { body: bodies.updated },
    delete: { body: bodies.deleted },
  });
}

// `/` is the parent of the root groups, and of the built-in roles.
function parseFilter(filter: RoleFilter): ChunkFilter {
  const { parent, uidp = create(UIDPFilterSchema) } = filter;
  if (parent === "") return { request: filter };
  const isParent = parent === "/" || isUidp(parent);
  if (!isParent || (uidp.childrenOf !== "" && uidp.childrenOf !== parent)) {
    const rule = "must be / or the id of a group, and uidp.childrenOf no other";
    throw invalidArgument({ field: "parent", rule });
  }
  return { request: { ...filter, uidp: { ...uidp, childrenOf: parent } } };
}

// The fields that callers set.
function fromV1({ id, name, description, capabilities }: Partial<Role> = {}) {
  return {
    ...{ uid: id ?? "", name: name ?? "", description: description ?? "" },
    capabilities: parseCapabilities(capabilities ?? []),
  };
}

/** Converts a stored role to version 1, which shows capabilities by name. */
export function roleToProtoV1(row: RoleRow): Role {
  return fromV2(roleToProto(row));
}

function fromV2({ uid, name, description, capabilities, createTime, updateTime }: RoleV2): Role {
  return create(RoleSchema, {
    ...{ id: uid, name, description, capabilities: formatCapabilityNames(capabilities) },
    ...(createTime && { createdAt: createTime }),
    ...(updateTime && { updatedAt: updateTime }),
  });
}
