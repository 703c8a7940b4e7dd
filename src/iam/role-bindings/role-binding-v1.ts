// RoleBindings, version 1: a view of RoleBindingsService.
import { type RoleBinding, RoleBindings } from "#gen/chainguard/platform/iam/role_binding_pb.js";
import type {
  RoleBindingsService,
  RoleBinding as RoleBindingV2,
} from "#gen/chainguard/platform/iam/v2beta1/role_bindings_pb.js";
import type { UnaryCall } from "../../pipeline/call.js";
import { listInChunks, type ServedService, serve, withOutcome } from "../../pipeline/method-table.js";
import { operationsOf } from "../../pipeline/operations.js";
import { rowsInParts } from "../../pipeline/resource/whole-list.js";
import { roleBindingView } from "./role-binding.js";
import { hydratedBindingV1, roleBindingV1 } from "./role-binding-v1-view.js";

const whole = { paths: ["identity_uid", "role_uid"] };
const names = { uid: "id", requests: "roleBindings", roleBinding: "", identityUid: "identity", roleUid: "role" };

/** RoleBindings, ready to be served. */
export function roleBindingsV1(served: ServedService<typeof RoleBindingsService>) {
  const v2 = operationsOf(served, names);
  return serve(RoleBindings, {
    create: async ({ parent, roleBinding }, call) =>
      shown(await v2.createRoleBinding({ parent, roleBinding: sent(roleBinding) }, call), call),

    async createBatch({ parent, roleBindings }, call) {
      const requests = roleBindings.map((one) => ({ roleBinding: sent(one) }));
      const made = await v2.batchCreateRoleBindings({ parent, requests }, call);
      const answers: RoleBinding[] = [];
      for (const one of made.roleBindings) answers.push(await shown(one, call));
      return withOutcome({ roleBindings: answers }, { subjectUid: parent });
    },

    async update({ id, ...binding }, call) {
      const roleBinding = { uid: id, ...sent(binding) };
      return shown(await v2.updateRoleBinding({ roleBinding, updateMask: whole }, call), call);
    },

    list: listInChunks(
      rowsInParts(
        (tx) => tx.roleBindings,
        (row) => hydratedBindingV1(roleBindingView(row), row),
      ),
    ),

    delete: ({ id }, call) => v2.deleteRoleBinding({ uid: id }, call),
  });
}

// Which group it is in is said by the place of the call, and `group` passed over.
function sent({ identity = "", role = "" }: Partial<RoleBinding> = {}) {
  return { identityUid: identity, roleUid: role };
}

async function shown(binding: RoleBindingV2, { tx }: UnaryCall): Promise<RoleBinding> {
  return roleBindingV1(binding, await tx.roleBindings.get(binding.uid));
}
