import { failedPrecondition, invalidArgument } from "../../kernel/errors.js";
import { builtinRoleUid, hostOwnerUid, type Ids, personUid } from "../../kernel/ids.js";
import { describeChange } from "../../pipeline/body.js";
import { isName } from "../../pipeline/resource/rules.js";
import { groupKind } from "../../store/iam/groups.js";
import { identityKind } from "../../store/iam/identities.js";
import type { Tx } from "../../store/transaction.js";
import { groupInviteToProto, groupInviteView } from "../group-invites/group-invite.js";
import { requireNotInDeletion } from "../identities/deletion.js";
import { buildStandaloneIdentity } from "../identities/identity.js";
import { type AwaitedOwner, inviteOwner } from "../people/owner-invite.js";
import { insertBinding } from "../role-bindings/create-binding.js";
import { roleBindingView } from "../role-bindings/role-binding.js";
import { auditOnHost, showBinding } from "./operate.js";

/** The first organisation of an installation. */
export interface Bootstrap {
  /** The name of its root group. */
  readonly org: string;
  /** The login provider's issuer and subject of its owner; absent: only the host can issue tokens for the owner. */
  readonly owner?: { readonly issuer: string; readonly subject: string };
  /** The person who becomes an owner as well by signing in. */
  readonly awaitedOwner?: AwaitedOwner;
}

/** The uids of what was created. */
export interface BootstrapResult {
  readonly group: string;
  readonly identity: string;
  readonly roleBinding: string;
  /** The invite of the owner who is awaited, if one is. */
  readonly groupInvite?: string;
}

/**
 * Creates a root group and its owner (docs/operations.md). Access to the host is the root of trust,
 * so no method of the API does this.
 *
 * @throws ApiError INVALID_ARGUMENT for a name that breaks the rule, FAILED_PRECONDITION when a root
 * group of this name exists, or another organisation awaits the same owner.
 */
export async function bootstrap(
  tx: Tx,
  { org, owner, awaitedOwner }: Bootstrap,
  ids: Ids,
  nowMs: number,
): Promise<BootstrapResult> {
  const broken = isName(org, "org");
  if (broken !== undefined) throw invalidArgument({ ...broken, field: "org" });
  if ((await tx.table(groupKind).findRootsNamed(org, 1)).length > 0) {
    throw failedPrecondition("ALREADY_BOOTSTRAPPED", `a root group named ${org} exists already`);
  }
  const times = { createTimeMs: nowMs, updateTimeMs: nowMs };
  const group = ids.newUid();
  await tx.table(groupKind).insert({
    uid: group,
    parentUid: null,
    name: org,
    description: "",
    verified: false,
    kind: 0,
    resourceLimits: {},
    issuerGuard: {},
    createdBy: "",
    ...times,
  });
  const identity = owner ? personUid(owner.issuer, owner.subject) : hostOwnerUid(group);
  if ((await tx.table(identityKind).find(identity)) === undefined) {
    await requireNotInDeletion(tx, identity, nowMs);
    await tx.table(identityKind).insert(
      buildStandaloneIdentity(nowMs, {
        uid: identity,
        name: "owner",
        // Callers of other organisations can read the description once they bind the identity.
        description: "Owner of an organisation",
        issuer: owner?.issuer ?? "",
        subject: owner?.subject ?? "",
      }),
    );
  }
  const grant = { identityUid: identity, roleUid: builtinRoleUid("owner") };
  const { uid } = await insertBinding(tx, group, grant, { ids, nowMs }, { automatic: true });
  const change = describeChange(roleBindingView, { after: await showBinding(tx, uid) });
  await auditOnHost(tx, { type: "arbor.bootstrap.v1", subjectUid: group, change }, { ids, nowMs });
  const result = { group, identity, roleBinding: uid };
  if (awaitedOwner === undefined) return result;
  const invite = await inviteOwner(tx, awaitedOwner, { group, createdBy: identity }, { ids, nowMs });
  await auditOnHost(
    tx,
    {
      type: "dev.chainguard.api.iam.group_invite.created.v1",
      subjectUid: invite.uid,
      change: describeChange(groupInviteView, { after: groupInviteToProto(invite, undefined) }),
    },
    { ids, nowMs },
  );
  return { ...result, groupInvite: invite.uid };
}
