// Roles, version 1: a view of RolesService.
import { create } from "@bufbuild/protobuf";
import { UIDPFilterSchema } from "#gen/chainguard/platform/common/uidp_pb.js";
import { type Role, type RoleFilter, Roles } from "#gen/chainguard/platform/iam/role_pb.js";
import type { RolesService } from "#gen/chainguard/platform/iam/v2beta1/roles_pb.js";
import { invalidArgument } from "../../kernel/errors.js";
import { isUidp } from "../../kernel/uidp.js";
import { listInChunks, type ServedService, serve } from "../../pipeline/method-table.js";
import { operationsOf } from "../../pipeline/operations.js";
import { type Asked, rowsInParts } from "../../pipeline/resource/whole-list.js";
import { capabilitiesNamed } from "./capability-names.js";
import { builtinRoleUids } from "./role.js";
import { roleRowV1, roleV1 } from "./role-v1-view.js";

const whole = { paths: ["name", "description", "capabilities"] };

/** Roles, ready to be served. */
export function rolesV1(served: ServedService<typeof RolesService>) {
  const v2 = operationsOf(served, { uid: "id", parent: "parentId" });
  return serve(Roles, {
    create: async ({ parentId, role }, call) =>
      roleV1(await v2.createRole({ parent: parentId, role: sent(role) }, call)),

    update: async (role, call) => roleV1(await v2.updateRole({ role: sent(role), updateMask: whole }, call)),

    list: listInChunks(rowsInParts((tx) => tx.roles, roleRowV1, asked)),

    delete: ({ id }, call) => v2.deleteRole({ uid: id }, call),
  });
}

// `/` stands for the place above all groups, where the built-in roles are.
function asked(filter: RoleFilter): Asked {
  const { parent, uidp = create(UIDPFilterSchema) } = filter;
  if (parent === "") return { request: filter, also: builtinRoleUids };
  const isPlace = parent === "/" || isUidp(parent);
  if (!isPlace || (uidp.childrenOf !== "" && uidp.childrenOf !== parent)) {
    const rule = "parent must be / or the id of a group, and uidp.childrenOf no other";
    throw invalidArgument({ field: "parent", description: rule });
  }
  return { request: { ...filter, uidp: { ...uidp, childrenOf: parent } }, also: builtinRoleUids };
}

function sent({ id, name, description, capabilities }: Partial<Role> = {}) {
  return {
    ...{ uid: id ?? "", name: name ?? "", description: description ?? "" },
    capabilities: capabilitiesNamed(capabilities ?? []),
  };
}
