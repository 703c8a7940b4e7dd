import { create } from "@bufbuild/protobuf";
import { type Role, RoleSchema } from "#gen/chainguard/platform/iam/role_pb.js";
import type { Role as RoleV2 } from "#gen/chainguard/platform/iam/v2beta1/roles_pb.js";
import type { RoleRow } from "../../store/port.js";
import { capabilityNamesOf } from "./capability-names.js";
import { roleView } from "./role.js";

/** A stored role as version 1 shows it. */
export const roleRowV1 = (row: RoleRow): Role => roleV1(roleView(row));

/** A role of version 2 as version 1 shows it: its capabilities by name. */
export function roleV1({ uid, name, description, capabilities, createTime, updateTime }: RoleV2): Role {
  return create(RoleSchema, {
    ...{ id: uid, name, description, capabilities: capabilityNamesOf(capabilities) },
    ...(createTime && { createdAt: createTime }),
    ...(updateTime && { updatedAt: updateTime }),
  });
}
