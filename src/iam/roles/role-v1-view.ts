import { create } from "@bufbuild/protobuf";
import { type Role, RoleSchema } from "#gen/chainguard/platform/iam/role_pb.js";
import type { RoleRow } from "../../store/port.js";
import { capabilityNamesIn } from "./capability-names.js";

/** A stored role as version 1 shows it. */
export function roleViewV1({ uid, name, description, capabilities }: RoleRow): Role {
  return create(RoleSchema, { id: uid, name, description, capabilities: capabilityNamesIn(capabilities) });
}
