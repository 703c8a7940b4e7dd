// The role bindings that follow from the groups of a directory: reconciles those of one person in one transaction.
//
//   wanted    for each group of the person and each mapping that names it, the role at the scope, while the identity that created
//             the mapping may still grant it there
//   existing  the bindings of the person's identity that the provider manages
//
// Surplus ones are deleted first, then missing ones are created. What a directory takes away has no effect before that: isLive of
// store/iam/role-bindings.ts compares each managed binding with the members and the mappings. What it gives has effect once its
// row is there, so no binding is created that this file has not compared with the rights of the mapper.
//
// work.ts says which people are reconciled after which change.

import { formatBody } from "../../kernel/audit-body.js";
import type { Ids } from "../../kernel/ids.js";
import { lineageOf, rootOf } from "../../kernel/uidp.js";
import { Caller } from "../../pipeline/auth/caller.js";
import { describeChange } from "../../pipeline/body.js";
import type { Quotas } from "../../pipeline/resource/quota.js";
import { groupKind } from "../../store/iam/groups.js";
import { identityKind } from "../../store/iam/identities.js";
import { identityProviderKind } from "../../store/iam/identity-providers.js";
import { type RoleBindingRow, roleBindingKind } from "../../store/iam/role-bindings.js";
import { type RoleRow, roleKind } from "../../store/iam/roles.js";
import type { MappedRole } from "../../store/iam/scim-members.js";
import { scimUserKind } from "../../store/iam/scim-users.js";
import type { AuditRow } from "../../store/tables/audit.js";
import type { Tx } from "../../store/transaction.js";
import { BINDING_DELETED } from "../people/pending-bindings.js";
import { mayGrantAt } from "../rights.js";
import { roleBindingToProto, roleBindingView } from "../role-bindings/role-binding.js";
import { isOperatorRole } from "../roles/builtin-roles.js";

/** What a change of a directory's rights needs besides the change. */
export interface DirectoryContext {
  readonly ids: Ids;
  readonly quotas: Quotas;
  /** Epoch milliseconds. */
  readonly nowMs: number;
  /** How many rows a unit of work changes or looks at; {@link MAX_UNIT} unless set. Tests set less. */
  readonly maxUnit?: number;
  /** The request that causes it, for the audit log; absent for what follows later. */
  readonly request?: Pick<AuditRow, "method" | "requestId" | "traceId" | "remoteAddress" | "tokenId">;
}

/** How many members a unit of work looks at, and how many bindings of one person it creates and deletes. */
export const MAX_UNIT = 50;
const BINDING_CREATED = "dev.chainguard.api.iam.rolebindings.created.v1";

const keyOf = ({ scope, roleUid }: Pick<MappedRole, "scope" | "roleUid">) => `${scope} ${roleUid}`;
const keyOfBinding = ({ groupUid, roleUid }: RoleBindingRow) => keyOf({ scope: groupUid, roleUid });

/** The rights of the people of one provider in one transaction. What it has read of mappers is not read again. */
export class DirectoryRights {
  readonly #tx: Tx;
  readonly #providerUid: string;
  readonly #context: DirectoryContext;
  readonly #grantable = new Map<string, boolean>();
  readonly #roles = new Map<string, RoleRow | undefined>();
  #actorName: string | undefined;

  constructor(tx: Tx, providerUid: string, context: DirectoryContext) {
    this.#tx = tx;
    this.#providerUid = providerUid;
    this.#context = context;
  }

  /**
   * Reconciles the bindings of an identity, at most {@link MAX_UNIT} of them.
   *
   * @param takesOnly only deletes what is surplus: where a quota leaves no room for the rest
   * @returns whether nothing is left to do
   * @throws ApiError RESOURCE_EXHAUSTED with the name of the quota, before anything is created
   */
  async reconcile(identityUid: string, takesOnly = false): Promise<boolean> {
    const bindings = this.#tx.table(roleBindingKind);
    const wanted = await this.#findWanted(identityUid);
    const existing = await bindings.findManagedOf(identityUid, this.#providerUid);
    const surplus = existing.filter((row) => !wanted.has(keyOfBinding(row)));
    const there = new Set(existing.map(keyOfBinding));
    const missing = takesOnly ? [] : [...wanted.values()].filter((role) => !there.has(keyOf(role)));
    const { maxUnit = MAX_UNIT } = this.#context;
    const deleted = surplus.slice(0, maxUnit);
    const created = missing.slice(0, maxUnit - deleted.length);
    await this.#deleteAll(deleted);
    await this.#createAll(identityUid, created);
    return deleted.length === surplus.length && created.length === missing.length;
  }

  async #findWanted(identityUid: string): Promise<Map<string, MappedRole>> {
    const wanted = new Map<string, MappedRole>();
    const user = await this.#tx.table(scimUserKind).findByIdentity(identityUid);
    const identity = await this.#tx.table(identityKind).find(identityUid);
    if (user?.providerUid !== this.#providerUid || identity === undefined || identity.deleteTimeMs !== null)
      return wanted;
    for (const role of await this.#tx.scimMembers.findMappedRoles(user.uid)) {
      if (!wanted.has(keyOf(role)) && (await this.#isGrantable(role))) wanted.set(keyOf(role), role);
    }
    return wanted;
  }

  // Whether the identity that created a mapping may still grant its role at its scope.
  async #isGrantable({ scope, roleUid, createdBy }: MappedRole): Promise<boolean> {
    const key = `${createdBy} ${scope} ${roleUid}`;
    const known = this.#grantable.get(key);
    if (known !== undefined) return known;
    const role = await this.#findRole(roleUid);
    const isGrantable =
      role !== undefined &&
      !isOperatorRole(roleUid) &&
      (await this.#tx.table(groupKind).find(scope)) !== undefined &&
      // Of a mapping without a creator the rights were compared when it was created.
      (createdBy === null || mayGrantAt(await this.#readMapper(createdBy, scope), role, scope));
    this.#grantable.set(key, isGrantable);
    return isGrantable;
  }

  async #findRole(uid: string): Promise<RoleRow | undefined> {
    if (!this.#roles.has(uid)) this.#roles.set(uid, await this.#tx.table(roleKind).find(uid));
    return this.#roles.get(uid);
  }

  // Nobody has rights who is deleted or deactivated.
  async #readMapper(identityUid: string, scope: string): Promise<Caller> {
    const seconds = Math.floor(this.#context.nowMs / 1000);
    const principal = { identityUid, tokenId: "", issuedAt: seconds, expiresAt: seconds };
    return new Caller(principal, [], await this.#tx.access.findGrantsAt(identityUid, lineageOf(scope)));
  }

  async #deleteAll(rows: readonly RoleBindingRow[]): Promise<void> {
    if (rows.length === 0) return;
    const bindings = this.#tx.table(roleBindingKind);
    for (const row of await bindings.findStoredHydrated(rows.map(({ uid }) => uid))) {
      await bindings.delete(row.uid);
      await this.#record(row.uid, BINDING_DELETED, { before: roleBindingToProto(row) });
    }
  }

  async #createAll(identityUid: string, roles: readonly MappedRole[]): Promise<void> {
    if (roles.length === 0) return;
    const { ids, quotas, nowMs } = this.#context;
    const rootUid = rootOf(this.#providerUid);
    const most = roles.length;
    await quotas.requireRoom(this.#tx, { kind: "bindings", ownerUid: rootUid, most });
    await quotas.requireRoom(this.#tx, { kind: "identityBindings", ownerUid: identityUid, rootUid, most });
    const bindings = this.#tx.table(roleBindingKind);
    const uids: string[] = [];
    for (const { scope, roleUid } of roles) {
      const uid = ids.newUid(scope);
      uids.push(uid);
      await bindings.insert({
        ...{ uid, groupUid: scope, identityUid, roleUid, managedByUid: this.#providerUid },
        ...{ automatic: false, accepted: true, pending: false, endTimeMs: null },
        ...{ createTimeMs: nowMs, updateTimeMs: nowMs },
      });
    }
    for (const row of await bindings.findStoredHydrated(uids)) {
      await this.#record(row.uid, BINDING_CREATED, { after: roleBindingToProto(row) });
    }
  }

  // The actor is the provider, as for everything that its directory changes.
  async #record(subjectUid: string, type: string, change: Parameters<typeof describeChange>[1]): Promise<void> {
    const { ids, nowMs, request } = this.#context;
    this.#actorName ??= (await this.#tx.table(identityProviderKind).find(this.#providerUid))?.name ?? "";
    await this.#tx.audit.append({
      ...(request ?? { method: "groups of the directory", requestId: ids.newId(), remoteAddress: "", tokenId: "" }),
      rootUid: rootOf(subjectUid),
      timeMs: nowMs,
      type,
      body: formatBody(describeChange(roleBindingView, change), type),
      subjectUid,
      actorUid: this.#providerUid,
      actorName: this.#actorName,
    });
  }
}
