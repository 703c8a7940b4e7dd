// Grants as answers show them.
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { Timestamp } from "@bufbuild/protobuf/wkt";
import { Effect, type GrantSchema, Origin } from "#gen/arbor/access/v1/access_pb.js";
import { type CapabilitySet, hasBit } from "../../kernel/capability-set.js";
import { timestampOf } from "../../kernel/time.js";
import { isWithin } from "../../kernel/uidp.js";
import { type Caller, effectiveGrants, type Grant } from "../../pipeline/auth/caller.js";
import type { NeededCapability } from "../../pipeline/method-table.js";
import type { AccessRow } from "../../store/iam/access.js";
import type { BindingRow } from "../../store/iam/access-questions.js";
import type { GroupMappingRow } from "../../store/iam/group-mappings.js";
import type { RoleSource } from "../../store/iam/scim-members.js";
import { listCapabilityNames } from "../roles/capability-names.js";
import { type Holder, type Lookups, listGroups } from "./holder.js";

export type GrantInit = MessageInitShape<typeof GrantSchema>;

/** How grants are shown: those with some of these capabilities, with these alone; all of them without any. */
export interface GrantView {
  readonly lookups: Lookups;
  readonly needed?: readonly NeededCapability[] | undefined;
  /** Whether pending bindings are marked, as only their own person sees. */
  readonly own: boolean;
}

/** The bindings of a holder that the view shows, at most `limit`. */
export async function describeBindings(
  { caller, bindings }: Pick<Holder, "caller" | "bindings">,
  view: GrantView,
  limit: number,
): Promise<GrantInit[]> {
  const shown: GrantInit[] = [];
  for (const binding of bindings) {
    if (shown.length === limit) break;
    const grant = caller && (await describeBinding(binding, caller.providerUid, view));
    if (grant) shown.push(grant);
  }
  return shown;
}

/**
 * Describes a binding.
 *
 * @param providerUid the organisation's provider that the person signs in through; null where there is none or the asker
 * may not know
 * @returns undefined where its role has none of the needed capabilities
 */
export async function describeBinding(
  binding: BindingRow,
  providerUid: string | null,
  { lookups, needed, own }: GrantView,
): Promise<GrantInit | undefined> {
  const { uid, groupUid, roleUid, pending } = binding;
  const capabilities = (await lookups.role(roleUid))?.capabilities;
  const names = capabilities === undefined ? undefined : listShown(capabilities, needed);
  if (needed !== undefined && names?.length === 0) return undefined;
  const counts = capabilities !== undefined && countsAlone({ ...binding, providerUid, capabilities });
  return {
    ...(await describeRole(groupUid, roleUid, lookups)),
    roleBinding: uid,
    capabilities: names ?? [],
    origin: originOf(binding),
    managedBy: binding.managedByUid ?? "",
    sources: (await lookups.sources(binding)).map(sourceToProto),
    pending: own && pending,
    ...buildEndTime(binding),
    effect: capabilities === undefined ? Effect.UNSPECIFIED : counts ? Effect.COUNTS : Effect.OTHER_PROVIDER,
  };
}

/** Describes what a mapping grants; undefined where the caller does not see its role, or it has no needed capability. */
export async function describeMapping(
  mapping: GroupMappingRow,
  effect: Effect,
  { lookups, needed }: GrantView,
): Promise<GrantInit | undefined> {
  const capabilities = (await lookups.role(mapping.roleUid))?.capabilities;
  const names = capabilities === undefined ? [] : listShown(capabilities, needed);
  if (capabilities === undefined || (needed && names.length === 0)) return undefined;
  return {
    ...(await describeRole(mapping.scope, mapping.roleUid, lookups)),
    mapping: mapping.uid,
    externalGroupId: mapping.externalGroupId,
    capabilities: names,
    effect,
  };
}

/**
 * Describes what a limited token leaves of the grants of its bearer, without the bindings that are behind it. The limit may name
 * any group, so its name is shown only to a caller who may list it.
 */
export async function describeLimited(
  grants: readonly Grant[],
  caller: Caller,
  { lookups, needed }: GrantView,
  limit: number,
): Promise<GrantInit[]> {
  const shown: GrantInit[] = [];
  for (const { groupUid, roleUid, capabilities, endTimeMs } of grants) {
    if (shown.length === limit) break;
    const names = listShown(capabilities, needed);
    if (names.length === 0) continue;
    const described = await describeRole(groupUid, roleUid, lookups);
    const group = caller.holds(listGroups, groupUid) ? described.group : { uid: groupUid };
    shown.push({ ...described, group, capabilities: names, effect: Effect.COUNTS, ...buildEndTime({ endTimeMs }) });
  }
  return shown;
}

/** The field of a right that ends; none for one that does not. */
export function buildEndTime({ endTimeMs }: Pick<Grant, "endTimeMs">): { readonly endTime?: Timestamp } {
  return endTimeMs === null ? {} : { endTime: timestampOf(endTimeMs) };
}

/** The grants that hold at a resource. */
export function grantsAt(grants: readonly Grant[], resource: string): readonly Grant[] {
  return grants.filter(({ groupUid }) => isWithin(resource, groupUid));
}

/** Describes a role at a group. */
export async function describeRole(groupUid: string, roleUid: string, lookups: Lookups) {
  return {
    group: { uid: groupUid, name: await lookups.groupName(groupUid) },
    role: { uid: roleUid, name: await lookups.roleName(roleUid) },
  };
}

function listShown(set: CapabilitySet, needed: readonly NeededCapability[] | undefined): string[] {
  if (needed === undefined) return listCapabilityNames(set);
  return needed.filter(({ bit }) => hasBit(set, bit)).map(({ name }) => name);
}

// By the rule that selects the grants of callers.
function countsAlone({
  identityUid,
  groupUid,
  roleUid,
  pending,
  endTimeMs,
  providerUid,
  capabilities,
}: BindingRow & Pick<AccessRow, "providerUid"> & { readonly capabilities: CapabilitySet }): boolean {
  const row: AccessRow = {
    identityUid,
    notBefore: 0,
    revokeTimeMs: 0,
    revokedTokenId: null,
    keyId: null,
    providerUid,
    groupUid,
    roleUid,
    capabilities,
    pending,
    endTimeMs,
  };
  const principal = { identityUid, tokenId: "", issuedAt: 0, expiresAt: 0 };
  return effectiveGrants(principal, [row]).length > 0;
}

function sourceToProto({ groupUid, groupName, externalGroupId, mappingUid }: RoleSource) {
  return { directoryGroup: groupUid, directoryGroupName: groupName, externalGroupId, mapping: mappingUid };
}

function originOf({ automatic, accepted, managedByUid }: BindingRow): Origin {
  if (managedByUid !== null) return Origin.DIRECTORY;
  if (automatic) return Origin.CREATED_GROUP;
  return accepted ? Origin.JOINED : Origin.BOUND;
}
