import { create } from "@bufbuild/protobuf";
import { type Timestamp, timestampFromMs } from "@bufbuild/protobuf/wkt";
import {
  type RoleBinding,
  type RoleBindingList_Binding,
  RoleBindingList_BindingSchema,
  RoleBindingSchema,
} from "#gen/chainguard/platform/iam/role_binding_pb.js";
import type { RoleBinding as RoleBindingV2 } from "#gen/chainguard/platform/iam/v2beta1/role_bindings_pb.js";
import type { RoleBindingRow } from "../../store/port.js";

type Changed = Pick<RoleBindingRow, "updateTimeMs"> | undefined;

/**
 * A binding of version 2 as version 1 shows it: the uids of what it joins.
 *
 * @param row when it was last changed, which version 2 does not tell
 */
export function roleBindingV1(binding: RoleBindingV2, row: Changed): RoleBinding {
  const { uid, identity, group, role } = binding;
  return create(RoleBindingSchema, {
    ...{ id: uid, identity: identity?.uid ?? "", group: group?.uid ?? "", role: role?.uid ?? "" },
    ...timesOf(binding, row),
  });
}

/**
 * A binding of version 2 as lists of version 1 show it. Of identity, group and role they tell what
 * version 2 tells of them and no more: no address that nobody confirmed, and no capabilities.
 *
 * @param row see {@link roleBindingV1}
 */
export function hydratedBindingV1(binding: RoleBindingV2, row: Changed): RoleBindingList_Binding {
  const { uid, identity, group, role } = binding;
  return create(RoleBindingList_BindingSchema, {
    id: uid,
    ...(group && { group: { id: group.uid, name: group.name, description: group.description } }),
    ...(role && { role: { id: role.uid, name: role.name, description: role.description } }),
    identity: identity?.uid ?? "",
    email: identity?.email ?? "",
    claimMatchIssuer: identity?.issuer ?? "",
    claimMatchSubject: identity?.subject ?? "",
    ...timesOf(binding, row),
  });
}

function timesOf({ createTime }: RoleBindingV2, row: Changed): { createdAt?: Timestamp; updatedAt?: Timestamp } {
  return {
    ...(createTime && { createdAt: createTime }),
    ...(row && { updatedAt: timestampFromMs(row.updateTimeMs) }),
  };
}
