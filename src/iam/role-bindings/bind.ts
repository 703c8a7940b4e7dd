// Binding: who may bind what to whom, and the row that comes of it.
import { type FieldViolation, invalidArgument } from "../../kernel/errors.js";
import { ANONYMOUS_UID, type Ids } from "../../kernel/ids.js";
import { rootOf } from "../../kernel/uidp.js";
import type { UnaryCall } from "../../pipeline/call.js";
import type { RoleBindingRow, RoleRow } from "../../store/port.js";
import { isPendingFor } from "../people/pending-bindings.js";
import { requireGrantable } from "../rights.js";
import { availableRole } from "../roles/available-role.js";
import { isPullRole, PULL_ROLE_RULE } from "./anonymous-rights.js";
import { insertBinding, type MembershipGrant } from "./new-binding.js";

/**
 * Makes sure that the caller may join these at `group`: the role is one that is available there, the
 * identity is a person or lies in the same organisation, and the role grants nothing the caller
 * lacks. People need not be registered yet: their uid is known before.
 *
 * @param path what precedes the field names in errors
 * @throws ApiError INVALID_ARGUMENT or PERMISSION_DENIED; neither tells whether something of another
 * organisation exists.
 */
export async function requireBindable(
  group: string,
  joined: MembershipGrant,
  call: UnaryCall,
  path = "",
): Promise<RoleRow> {
  const { tx, caller } = call;
  const violations: FieldViolation[] = [];
  const refuse = (name: string, rule: string) =>
    violations.push({ field: path + name, description: `${name} ${rule}` });

  const available = await availableRole(joined.roleUid, group, tx);
  if (available === undefined) refuse("roleUid", "must be a built-in role or one of the group or above it");

  const { identityUid } = joined;
  const isPerson = !identityUid.includes("/");
  const known =
    isPerson || (rootOf(identityUid) === rootOf(group) && (await tx.identities.get(identityUid)) !== undefined);
  if (!known) refuse("identityUid", "must be a person or an identity of the organisation");

  if (available && identityUid === ANONYMOUS_UID && !isPullRole(available)) refuse("roleUid", PULL_ROLE_RULE);

  if (available === undefined || violations.length > 0) throw invalidArgument(...violations);
  requireGrantable(caller, available, group);
  return available;
}

/** Joins them at `group`, or finds that they are joined already; what exists is not an error. */
export async function bind(group: string, joined: MembershipGrant, call: UnaryCall, ids: Ids): Promise<RoleBindingRow> {
  const { tx, caller, startMs } = call;
  const existing = await tx.roleBindings.same(group, joined.identityUid, joined.roleUid);
  if (existing !== undefined) return existing;
  const pending = await isPendingFor(tx, joined.identityUid, group, caller.uid);
  return insertBinding(tx, group, joined, { ids, nowMs: startMs }, { pending });
}
