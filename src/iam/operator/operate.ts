// What the operator does on the host that no caller on the network may do.
import { OrgKindSchema } from "#gen/chainguard/platform/iam/v2beta1/groups_pb.js";
import { failedPrecondition, invalidArgument, notFound } from "../../kernel/errors.js";
import type { Ids } from "../../kernel/ids.js";
import type { GroupPatch, Tx } from "../../store/port.js";
import { groups } from "../groups/group.js";
import { identities } from "../identities/identity.js";
import { insertBinding } from "../role-bindings/new-binding.js";
import { roles } from "../roles/role.js";
import { auditOnHost } from "./audit-on-host.js";

/** When and with what ids an operation on the host happens. */
export interface HostContext {
  readonly ids: Ids;
  readonly nowMs: number;
}

const DOMAIN = /^(?=.{1,253}$)[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)+$/;

/**
 * Confirms that a root group is the organisation its name says. The name, a domain, belongs to it
 * alone from then on and cannot change.
 *
 * @param kind name of an OrgKind, such as `ORG_KIND_CUSTOMER`; absent: unchanged
 * @throws ApiError NOT_FOUND, INVALID_ARGUMENT, or FAILED_PRECONDITION when the group is no root, is
 * not named like a domain, or another verified root has the name.
 */
export async function verifyGroup(tx: Tx, uid: string, kind: string | undefined, context: HostContext): Promise<void> {
  const row = await tx.groups.get(uid);
  if (row === undefined) throw notFound(groups, uid);
  const refuse = (rule: string) => failedPrecondition("GROUP_NOT_VERIFIABLE", rule);
  if (row.parentUid !== null) throw refuse("only a root group can be verified");
  if (!DOMAIN.test(row.name)) throw refuse("a verified group must be named like a domain, such as example.org");
  const namesake = await tx.groups.verifiedRoot(row.name);
  if (namesake !== undefined && namesake.uid !== uid) throw refuse("another verified group has this name");
  const patch: GroupPatch = { verified: true, ...(kind !== undefined && { kind: kindNumber(kind) }) };
  await tx.groups.update(uid, patch, context.nowMs);
  await auditOnHost(tx, "arbor.group.verified.v1", uid, context.nowMs, context.ids);
}

function kindNumber(name: string): number {
  const value = OrgKindSchema.values.find((one) => one.name === name);
  if (value !== undefined) return value.number;
  const names = OrgKindSchema.values.map((one) => one.name).join(", ");
  throw invalidArgument({ field: "kind", description: `kind must be one of ${names}` });
}

/**
 * Makes every token void that an identity has, and every login of it. New ones it may get as before.
 *
 * @throws ApiError NOT_FOUND
 */
export async function revokeTokens(tx: Tx, uid: string, { ids, nowMs }: HostContext): Promise<void> {
  // Tokens count in whole seconds, so those of the running second go as well.
  const notBefore = Math.floor(nowMs / 1000) + 1;
  if ((await tx.identities.update(uid, { notBefore }, nowMs)) === undefined) throw notFound(identities, uid);
  await tx.refreshTokens.deleteOf(uid);
  await auditOnHost(tx, "arbor.identity.revoked.v1", uid, nowMs, ids);
}

/**
 * Binds an identity to a role at a group; returns the uid of the binding.
 *
 * @throws ApiError NOT_FOUND when the group, the identity or the role does not exist.
 */
export async function bindIdentity(
  tx: Tx,
  binding: { readonly identity: string; readonly role: string; readonly group: string },
  { ids, nowMs }: HostContext,
): Promise<string> {
  const { identity, role, group } = binding;
  if ((await tx.groups.get(group)) === undefined) throw notFound(groups, group);
  if ((await tx.identities.get(identity)) === undefined) throw notFound(identities, identity);
  if ((await tx.roles.get(role)) === undefined) throw notFound(roles, role);
  const { uid } = await insertBinding(tx, group, { identityUid: identity, roleUid: role }, { ids, nowMs });
  await auditOnHost(tx, "arbor.role_binding.created.v1", uid, nowMs, ids);
  return uid;
}
