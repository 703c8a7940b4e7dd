// Operator roles: roles with capabilities that organisations never have. They belong to no group, so no caller of the
// API can reach them, and a caller that holds one cannot pass it on.
import { create } from "@bufbuild/protobuf";
import { RoleSchema } from "#gen/chainguard/platform/iam/v2beta1/roles_pb.js";
import { failedPrecondition, invalidArgument, notFound } from "../../kernel/errors.js";
import { describeChange } from "../../pipeline/body.js";
import { buildValues } from "../../pipeline/resource/patch.js";
import { type RoleBindingRow, roleBindingKind } from "../../store/iam/role-bindings.js";
import { type RoleRow, roleKind } from "../../store/iam/roles.js";
import type { Tx } from "../../store/transaction.js";
import { builtinRoles, isOperatorRole } from "../roles/builtin-roles.js";
import { buildCapabilitySet, isCapabilityName, parseCapabilities } from "../roles/capability-names.js";
import { roles, roleToProto } from "../roles/role.js";
import { roleView } from "../roles/role-v2beta1.js";
import { auditOnHost, type HostContext } from "./operate.js";

export interface NewOperatorRole {
  readonly name: string;
  readonly description: string;
  /** Dotted names. */
  readonly capabilities: readonly string[];
}

/**
 * Creates an operator role.
 *
 * @throws ApiError INVALID_ARGUMENT for a capability that does not exist, none at all, a name or description that
 * breaks its rule, or the name of a built-in role, as which organisations would see it on its bindings.
 */
export async function createOperatorRole(
  tx: Tx,
  { name, description, capabilities }: NewOperatorRole,
  { ids, nowMs }: HostContext,
): Promise<RoleRow> {
  const unknown = capabilities.filter((one) => !isCapabilityName(one));
  if (unknown.length > 0) {
    throw invalidArgument({ field: "capability", subject: "", rule: `there is no capability ${unknown.join(", ")}` });
  }
  if (Object.hasOwn(builtinRoles, name)) {
    throw invalidArgument({ field: "name", rule: "must not be that of a built-in role" });
  }
  const role = create(RoleSchema, { name, description, capabilities: parseCapabilities(capabilities) });
  const values = buildValues(roles, role);
  const row: RoleRow = {
    uid: ids.newUid(),
    groupUid: null,
    ...values,
    capabilities: buildCapabilitySet(capabilities),
    createTimeMs: nowMs,
    updateTimeMs: nowMs,
  };
  await tx.table(roleKind).insert(row);
  const change = describeChange(roleView, { after: roleToProto(row) });
  await auditOnHost(
    tx,
    { type: "dev.chainguard.api.iam.roles.created.v1", subjectUid: row.uid, change },
    { ids, nowMs },
  );
  return row;
}

/** An operator role and its bindings. */
export interface OperatorRole {
  readonly row: RoleRow;
  readonly bindings: readonly RoleBindingRow[];
}

/** Lists the operator roles, in the order of uids. */
export async function listOperatorRoles(tx: Tx): Promise<OperatorRole[]> {
  const listed: OperatorRole[] = [];
  for (const row of await tx.table(roleKind).listOutsideGroups()) {
    if (isOperatorRole(row.uid)) listed.push({ row, bindings: await tx.table(roleBindingKind).findByRole(row.uid) });
  }
  return listed;
}

/**
 * Deletes an operator role.
 *
 * @throws ApiError NOT_FOUND, also for any other role, or FAILED_PRECONDITION while it is bound.
 */
export async function deleteOperatorRole(tx: Tx, uid: string, { ids, nowMs }: HostContext): Promise<void> {
  const row = await tx.table(roleKind).find(uid);
  if (!isOperatorRole(uid) || row === undefined) {
    throw notFound(roles, uid, `there is no operator role ${uid}`);
  }
  if (await tx.table(roleBindingKind).isBound(uid)) {
    throw failedPrecondition("RESOURCE_IN_USE", "cannot delete role that is in use");
  }
  await tx.table(roleKind).delete(uid);
  const change = describeChange(roleView, { before: roleToProto(row) });
  await auditOnHost(tx, { type: "dev.chainguard.api.iam.roles.deleted.v1", subjectUid: uid, change }, { ids, nowMs });
}
