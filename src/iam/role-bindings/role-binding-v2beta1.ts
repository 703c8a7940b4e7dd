// The handlers of RoleBindingsService in version 2beta1.
import { create } from "@bufbuild/protobuf";
import {
  type BatchCreateRoleBindingsRequest,
  type RoleBinding,
  RoleBindingSchema,
  RoleBindingsService,
} from "#gen/chainguard/platform/iam/v2beta1/role_bindings_pb.js";
import { alreadyExists, type FieldViolation, invalidArgument, notFound } from "../../kernel/errors.js";
import { isUidp, rootOf } from "../../kernel/uidp.js";
import { serve, withOutcome } from "../../pipeline/method-table.js";
import { listQueryOf } from "../../pipeline/resource/list-query.js";
import { patchOf, valuesOf } from "../../pipeline/resource/patch.js";
import type { Tx } from "../../store/port.js";
import { requireParentGroup } from "../groups/parent-group.js";
import type { IamDeps } from "../iam-deps.js";
import { isPendingFor } from "../people/pending-bindings.js";
import { requireOwner } from "../rights.js";
import { bind, requireBindable } from "./bind.js";
import { roleBindings, roleBindingView } from "./role-binding.js";

/** How many bindings a batch creates at most. */
export const MAX_BATCH = 25;

/** RoleBindingsService, ready to be served. */
export function roleBindingsV2beta1({ tokens, ids }: IamDeps) {
  return serve(RoleBindingsService, {
    getRoleBinding: ({ uid }, { tx }) => viewOf(uid, tx),

    async listRoleBindings(request, call) {
      const { tx, startMs } = call;
      const equals = equalsOf({ identityUid: request.identity, groupUid: request.group, roleUid: request.role });
      const visible = await call.visibleGroups(request.uidp, request.group);
      const context = { method: "ListRoleBindings", tokens, nowMs: startMs, visible, ...(equals && { equals }) };
      const list = listQueryOf(roleBindings, request, context);
      const page = await tx.roleBindings.list(list.query);
      return { roleBindings: page.rows.map(roleBindingView), ...list.envelope(page) };
    },

    async createRoleBinding({ parent, roleBinding }, call) {
      await requireParentGroup(parent, call);
      const joined = valuesOf(roleBindings, roleBinding);
      await requireBindable(parent, joined, call);
      const { uid } = await bind(parent, joined, call, ids);
      return viewOf(uid, call.tx);
    },

    async batchCreateRoleBindings(request, call) {
      const { parent } = request;
      await requireParentGroup(parent, call);
      const uids: string[] = [];
      for (const [i, one] of batchOf(request).entries()) {
        const at = `requests[${i}].roleBinding.`;
        const joined = valuesOf(roleBindings, one, at);
        await requireBindable(parent, joined, call, at);
        uids.push((await bind(parent, joined, call, ids)).uid);
      }
      return withOutcome({ roleBindings: await viewsOf(uids, call.tx) }, { subjectUid: parent });
    },

    async updateRoleBinding({ roleBinding, updateMask }, call) {
      const { tx, startMs } = call;
      const uid = roleBinding?.uid ?? "";
      const before = await tx.roleBindings.get(uid);
      if (before === undefined) throw notFound(roleBindings, uid);
      const { identityUid, roleUid, groupUid } = before;
      const patch = patchOf(roleBindings, roleBinding, updateMask, create(RoleBindingSchema, { identityUid, roleUid }));
      const joined = { identityUid, roleUid, ...patch };
      if (joined.identityUid === identityUid && joined.roleUid === roleUid) return viewOf(uid, tx);
      await requireBindable(groupUid, joined, call);
      if (await tx.roleBindings.same(groupUid, joined.identityUid, joined.roleUid))
        throw alreadyExists(roleBindings, uid);
      const isSame = joined.identityUid === identityUid;
      const accepted = before.accepted && isSame;
      const pending = isSame ? before.pending : await isPendingFor(tx, joined.identityUid, groupUid, call.caller.uid);
      await tx.roleBindings.update(uid, { ...joined, accepted, pending }, startMs);
      await requireOwner(tx, rootOf(groupUid));
      return viewOf(uid, tx);
    },

    // What is not there needs no deleting: clients repeat deletions.
    async deleteRoleBinding({ uid }, { tx }) {
      const row = await tx.roleBindings.get(uid);
      if (row === undefined) return {};
      await tx.roleBindings.delete(uid);
      await requireOwner(tx, row.groupUid);
      return {};
    },
  });
}

async function viewOf(uid: string, tx: Tx): Promise<RoleBinding> {
  const [view] = await viewsOf([uid], tx);
  if (view === undefined) throw notFound(roleBindings, uid);
  return view;
}

async function viewsOf(uids: readonly string[], tx: Tx): Promise<RoleBinding[]> {
  const found = new Map((await tx.roleBindings.hydrated(uids)).map((row) => [row.uid, row]));
  return uids.flatMap((uid) => {
    const row = found.get(uid);
    return row ? [roleBindingView(row)] : [];
  });
}

function equalsOf(filters: Record<"identityUid" | "groupUid" | "roleUid", string>) {
  const set = Object.entries(filters).filter(([, uid]) => uid !== "");
  const violations = set
    .filter(([, uid]) => !isUidp(uid))
    .map(([column]) => column.replace("Uid", ""))
    .map((field) => ({ field, description: `${field} must be a uid, such as the service assigns` }));
  if (violations.length > 0) throw invalidArgument(...violations);
  return set.length > 0 ? Object.fromEntries(set) : undefined;
}

// The role of the batch stands for that of every item that names none.
function batchOf({ parent, requests, roleUid }: BatchCreateRoleBindingsRequest): RoleBinding[] {
  const violations: FieldViolation[] = [];
  if (requests.length === 0) violations.push({ field: "requests", description: "requests is required" });
  if (requests.length > MAX_BATCH)
    violations.push({ field: "requests", description: `requests must be at most ${MAX_BATCH}` });
  const bindings = requests.slice(0, MAX_BATCH).map((item, i) => {
    const binding = item.roleBinding ?? create(RoleBindingSchema);
    const at = `requests[${i}]`;
    if (item.parent !== "" && item.parent !== parent) {
      violations.push({ field: `${at}.parent`, description: "parent must be empty or that of the batch" });
    }
    if (roleUid !== "" && binding.roleUid !== "" && binding.roleUid !== roleUid) {
      violations.push({
        field: `${at}.roleBinding.roleUid`,
        description: "roleUid must be empty or that of the batch",
      });
    }
    return create(RoleBindingSchema, { identityUid: binding.identityUid, roleUid: binding.roleUid || roleUid });
  });
  if (violations.length > 0) throw invalidArgument(...violations);
  return bindings;
}
