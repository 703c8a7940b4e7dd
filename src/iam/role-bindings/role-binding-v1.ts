// RoleBindings, version 1: a view of RoleBindingsService.
import { create } from "@bufbuild/protobuf";
import type { Timestamp } from "@bufbuild/protobuf/wkt";
import {
  type RoleBinding,
  RoleBindingBatchSchema,
  type RoleBindingList_Binding,
  RoleBindingList_BindingSchema,
  RoleBindingSchema,
  RoleBindings,
} from "#gen/chainguard/platform/iam/role_binding_pb.js";
import type {
  RoleBindingsService,
  RoleBinding as RoleBindingV2,
} from "#gen/chainguard/platform/iam/v2beta1/role_bindings_pb.js";
import { timestampOf } from "../../kernel/time.js";
import { defineBodies } from "../../pipeline/body.js";
import type { UnaryCall } from "../../pipeline/call.js";
import { type Handlers, listInChunks, withOutcome } from "../../pipeline/handlers.js";
import { type ServedService, serve } from "../../pipeline/method-table.js";
import { createOperations } from "../../pipeline/operations.js";
import { defineFixedFields, requireCreated, requireUpdated } from "../../pipeline/resource/fixed-fields.js";
import { findsResource } from "../../pipeline/resource/read.js";
import { createChunkReader } from "../../pipeline/resource/unpaginated-list.js";
import { type RoleBindingRow, roleBindingKind } from "../../store/iam/role-bindings.js";
import { roleBindings, roleBindingToProto } from "./role-binding.js";

const fullMask = { paths: ["identity_uid", "role_uid"] };
const names = { uid: "id", requests: "roleBindings", roleBinding: "", identityUid: "identity", roleUid: "role" };

const fixed = defineFixedFields(RoleBindingSchema, {
  group: { rule: "must be the group in which the binding is created" },
});

const view = { message: RoleBindingSchema, readers: [RoleBindings.method.list] } as const;
const bodies = defineBodies(
  view,
  findsResource(roleBindings, (row) => convert(roleBindingToProto(row), row)),
);

/** Creates RoleBindings of version 1. */
export function roleBindingsV1(served: ServedService<typeof RoleBindingsService>) {
  const v2 = createOperations(served, names);
  const handlers: Handlers<typeof RoleBindings> = {
    async create({ parent, roleBinding }, call) {
      const created = await v2.createRoleBinding({ parent, roleBinding: fromV1(roleBinding) }, call);
      return requireCreated(fixed, roleBinding, await toProtoV1(created, call));
    },

    async createBatch({ parent, roleBindings: bindings }, call) {
      const requests = bindings.map((one) => ({ roleBinding: fromV1(one) }));
      const batch = await v2.batchCreateRoleBindings({ parent, requests }, call);
      const responses: RoleBinding[] = [];
      for (const [i, one] of batch.roleBindings.entries()) {
        responses.push(requireCreated(fixed, bindings[i], await toProtoV1(one, call), `roleBindings[${i}].`));
      }
      return withOutcome({ roleBindings: responses }, { subjectUid: parent });
    },

    async update(binding, call) {
      const roleBinding = { uid: binding.id, ...fromV1(binding) };
      const updated = await v2.updateRoleBinding({ roleBinding, updateMask: fullMask }, call);
      return requireUpdated(fixed, binding, await toProtoV1(updated, call));
    },

    list: listInChunks(createChunkReader(roleBindings, (row) => toHydratedProtoV1(roleBindingToProto(row), row))),

    delete: ({ id }, call) => v2.deleteRoleBinding({ uid: id }, call),
  };
  return serve(RoleBindings, handlers, {
    create: { body: bodies.created },
    createBatch: { body: { view: { message: RoleBindingBatchSchema, readers: view.readers } } },
    update: { body: bodies.updated },
    delete: { body: bodies.deleted },
  });
}

// The parent of the request names the group.
function fromV1({ identity = "", role = "" }: Partial<RoleBinding> = {}) {
  return { identityUid: identity, roleUid: role };
}

async function toProtoV1(binding: RoleBindingV2, { tx }: UnaryCall): Promise<RoleBinding> {
  return convert(binding, await tx.table(roleBindingKind).find(binding.uid));
}

type UpdateTime = Pick<RoleBindingRow, "updateTimeMs"> | undefined;

// Version 2 does not show when a binding was updated, so that comes from the row.
function convert(binding: RoleBindingV2, row: UpdateTime): RoleBinding {
  const { uid, identity, group, role } = binding;
  return create(RoleBindingSchema, {
    ...{ id: uid, identity: identity?.uid ?? "", group: group?.uid ?? "", role: role?.uid ?? "" },
    ...buildTimes(binding, row),
  });
}

// Lists show of identity, group and role what version 2 shows: no unverified address and no capabilities.
function toHydratedProtoV1(binding: RoleBindingV2, row: UpdateTime): RoleBindingList_Binding {
  const { uid, identity, group, role } = binding;
  return create(RoleBindingList_BindingSchema, {
    id: uid,
    ...(group && { group: { id: group.uid, name: group.name, description: group.description } }),
    ...(role && { role: { id: role.uid, name: role.name, description: role.description } }),
    identity: identity?.uid ?? "",
    email: identity?.email ?? "",
    claimMatchIssuer: identity?.issuer ?? "",
    claimMatchSubject: identity?.subject ?? "",
    ...buildTimes(binding, row),
  });
}

function buildTimes({ createTime }: RoleBindingV2, row: UpdateTime): { createdAt?: Timestamp; updatedAt?: Timestamp } {
  return {
    ...(createTime && { createdAt: createTime }),
    ...(row && { updatedAt: timestampOf(row.updateTimeMs) }),
  };
}
