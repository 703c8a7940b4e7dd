// The handlers of RoleBindingsService in version 2beta1.
import { create } from "@bufbuild/protobuf";
import {
  type BatchCreateRoleBindingsRequest,
  BatchCreateRoleBindingsResponseSchema,
  type RoleBinding,
  RoleBindingSchema,
  RoleBindingsService,
} from "#gen/chainguard/platform/iam/v2beta1/role_bindings_pb.js";
import { alreadyExists, type FieldViolation, invalidArgument, notFound } from "../../kernel/errors.js";
import { rootOf } from "../../kernel/uidp.js";
import { defineBodies } from "../../pipeline/body.js";
import { type Handlers, withOutcome } from "../../pipeline/handlers.js";
import { type FormerPath, serve } from "../../pipeline/method-table.js";
import { buildPatch, buildValues } from "../../pipeline/resource/patch.js";
import { findsResource, getResource, getRow, type ResourceDeps } from "../../pipeline/resource/read.js";
import { roleBindingKind } from "../../store/iam/role-bindings.js";
import type { Tx } from "../../store/transaction.js";
import { groups } from "../groups/group.js";
import { findConsent } from "../people/pending-bindings.js";
import { requireNotOperatorRole, requireOwner } from "../rights.js";
import { ensureBinding, removeEndedSame, requireBindable } from "./create-binding.js";
import { MAX_BATCH, requireManual, roleBindings, roleBindingToProto, roleBindingView } from "./role-binding.js";

const bodies = defineBodies(roleBindingView, findsResource(roleBindings, roleBindingToProto));

// Those of version 1 with the prefix of version 2 (docs/v1.md).
const formerPaths: readonly FormerPath[] = [
  { current: "/roleBindings", former: "/rolebindings" },
  { current: "/roleBindings:batchCreate", former: "/rolebindings/batch/{parent=**}" },
];

/** Creates RoleBindingsService. */
export function roleBindingsV2beta1({ listResources, ids }: Pick<ResourceDeps, "listResources" | "ids">) {
  const handlers: Handlers<typeof RoleBindingsService> = {
    getRoleBinding: ({ uid }, { tx }) => toProto(uid, tx),

    async listRoleBindings(request, call) {
      const options = { named: request.group };
      const { resources, ...page } = await listResources(call, roleBindings, request, roleBindingToProto, options);
      return { roleBindings: resources, ...page };
    },

    async createRoleBinding({ parent, roleBinding }, call) {
      await getRow(call.tx, groups, parent);
      const grant = buildValues(roleBindings, roleBinding);
      await requireBindable(parent, grant, call);
      const { uid } = await ensureBinding(parent, grant, call, ids);
      return toProto(uid, call.tx);
    },

    async batchCreateRoleBindings(request, call) {
      const { parent } = request;
      await getRow(call.tx, groups, parent);
      const uids: string[] = [];
      for (const [i, one] of expandBatch(request).entries()) {
        const at = `requests[${i}].roleBinding.`;
        const grant = buildValues(roleBindings, one, at);
        await requireBindable(parent, grant, call, { path: at });
        uids.push((await ensureBinding(parent, grant, call, ids)).uid);
      }
      return withOutcome({ roleBindings: await readToProto(uids, call.tx) }, { subjectUid: parent });
    },

    async updateRoleBinding({ roleBinding, updateMask }, call) {
      const { tx, startMs } = call;
      const uid = roleBinding?.uid ?? "";
      const before = await tx.table(roleBindingKind).find(uid);
      if (before === undefined) throw notFound(roleBindings, uid);
      const { identityUid, roleUid, groupUid } = before;
      const patch = buildPatch(
        roleBindings,
        roleBinding,
        updateMask,
        create(RoleBindingSchema, { identityUid, roleUid }),
      );
      const grant = { identityUid, roleUid, ...patch };
      if (grant.identityUid === identityUid && grant.roleUid === roleUid) return await toProto(uid, tx);
      requireManual(before);
      requireNotOperatorRole(roleUid, `changing binding ${uid}`);
      // The binding keeps its end, so it may rest on rights that last as long.
      await requireBindable(groupUid, grant, call, { endMs: before.endTimeMs });
      if (await tx.table(roleBindingKind).findSame(groupUid, grant.identityUid, grant.roleUid))
        throw alreadyExists(roleBindings, uid);
      await removeEndedSame(tx, groupUid, grant, { ids, nowMs: startMs });
      const isSame = grant.identityUid === identityUid;
      const { accepted, pending } = isSame
        ? before
        : await findConsent(tx, grant.identityUid, groupUid, call.caller.uid);
      await tx.table(roleBindingKind).update(uid, { ...grant, accepted, pending }, startMs);
      await requireOwner(tx, rootOf(groupUid));
      return toProto(uid, tx);
    },

    // Deletion is idempotent, because clients repeat it.
    async deleteRoleBinding({ uid }, { tx }) {
      const row = await tx.table(roleBindingKind).find(uid);
      if (row === undefined) return {};
      requireManual(row);
      requireNotOperatorRole(row.roleUid, `deleting binding ${uid}`);
      await tx.table(roleBindingKind).delete(uid);
      await requireOwner(tx, row.groupUid);
      return {};
    },
  };
  const batchView = { message: BatchCreateRoleBindingsResponseSchema, readers: roleBindingView.readers };
  const service = serve(RoleBindingsService, handlers, {
    createRoleBinding: { body: bodies.created },
    batchCreateRoleBindings: { body: { view: batchView } },
    updateRoleBinding: { body: bodies.updated },
    deleteRoleBinding: { body: bodies.deleted },
  });
  return { ...service, formerPaths };
}

function toProto(uid: string, tx: Tx): Promise<RoleBinding> {
  return getResource(tx, roleBindings, uid, roleBindingToProto);
}

async function readToProto(uids: readonly string[], tx: Tx): Promise<RoleBinding[]> {
  const found = new Map((await tx.table(roleBindingKind).findHydrated(uids)).map((row) => [row.uid, row]));
  return uids.flatMap((uid) => {
    const row = found.get(uid);
    return row ? [roleBindingToProto(row)] : [];
  });
}

// The role of the batch applies to every item without a role of its own.
function expandBatch({ parent, requests, roleUid }: BatchCreateRoleBindingsRequest): RoleBinding[] {
  const violations: FieldViolation[] = [];
  if (requests.length === 0) violations.push({ field: "requests", rule: "is required" });
  if (requests.length > MAX_BATCH) violations.push({ field: "requests", rule: `must be at most ${MAX_BATCH}` });
  const bindings = requests.slice(0, MAX_BATCH).map((item, i) => {
    const binding = item.roleBinding ?? create(RoleBindingSchema);
    const at = `requests[${i}]`;
    if (item.parent !== "" && item.parent !== parent) {
      violations.push({ field: `${at}.parent`, subject: "parent", rule: "must be empty or that of the batch" });
    }
    if (roleUid !== "" && binding.roleUid !== "" && binding.roleUid !== roleUid) {
      violations.push({
        field: `${at}.roleBinding.roleUid`,
        subject: "roleUid",
        rule: "must be empty or that of the batch",
      });
    }
    return create(RoleBindingSchema, { identityUid: binding.identityUid, roleUid: binding.roleUid || roleUid });
  });
  if (violations.length > 0) throw invalidArgument(...violations);
  return bindings;
}
