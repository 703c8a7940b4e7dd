// The resource of external group role mappings, and its handlers in version 2beta1: which role the members of a
// directory's group get.
import { create } from "@bufbuild/protobuf";
import { ExternalGroupRoleMappings } from "#gen/chainguard/platform/iam/external_group_role_mappings_pb.js";
import { ExternalGroupRoleMappingsService as StableMappingsService } from "#gen/chainguard/platform/iam/v2/external_group_role_mappings_pb.js";
import {
  BatchDeleteExternalGroupRoleMappingsResponseSchema,
  type ExternalGroupRoleMapping,
  ExternalGroupRoleMappingSchema,
  ExternalGroupRoleMappingsService,
} from "#gen/chainguard/platform/iam/v2beta1/external_group_role_mappings_pb.js";
import { alreadyExists, breakRule, invalidArgument } from "../../kernel/errors.js";
import { timestampOf } from "../../kernel/time.js";
import { parentOf, rootOf } from "../../kernel/uidp.js";
import { defineBodies } from "../../pipeline/body.js";
import type { UnaryCall } from "../../pipeline/call.js";
import { type Handlers, withOutcome } from "../../pipeline/handlers.js";
import { serve } from "../../pipeline/method-table.js";
import { defineResource } from "../../pipeline/resource/define.js";
import { countRows, deleteRows } from "../../pipeline/resource/delete.js";
import { buildValues } from "../../pipeline/resource/patch.js";
import { createsInScope, type Quotas } from "../../pipeline/resource/quota.js";
import { findsResource, getResource, getRow, type ResourceDeps } from "../../pipeline/resource/read.js";
import { type FieldRule, isPrintable, isRequiredUid } from "../../pipeline/resource/rules.js";
import { type GroupMappingRow, groupMappingKind } from "../../store/iam/group-mappings.js";
import { groupKind } from "../../store/iam/groups.js";
import type { Store } from "../../store/store.js";
import { finishWork, followMapping } from "../directories/work.js";
import { groups } from "../groups/group.js";
import { identityProviders } from "../identity-providers/identity-provider.js";
import { requireGrantable } from "../rights.js";
import { requireAvailableRole } from "../roles/role.js";

const isExternalId: FieldRule = (value, field) => {
  if (value === undefined || value === "") return breakRule(field, "is required");
  return String(value).length <= 256 && isPrintable(String(value))
    ? undefined
    : breakRule(field, "must be 1 to 256 characters");
};

/** The mapping resource. Mappings are created and deleted, and never change. */
export const groupMappings = defineResource({
  displayName: "external group role mapping",
  type: "iam.chainguard.dev/ExternalGroupRoleMapping",
  plural: "external group role mappings",
  message: ExternalGroupRoleMappingSchema,
  kind: groupMappingKind,
  parent: {
    type: "iam.chainguard.dev/IdentityProvider",
    onDelete: { cascade: (tx, uid) => deleteRows(tx.table(groupMappingKind), "providerUid", uid) },
  },
  keeps: {
    type: groups.type,
    restrict: (tx, uid) => countRows(tx.table(groupMappingKind), "scope", uid),
  },
  createdBy: [
    createsInScope(ExternalGroupRoleMappingsService.method.createExternalGroupRoleMapping),
    createsInScope(ExternalGroupRoleMappings.method.create),
  ],
  stable: StableMappingsService,
  filters: { identityProviderUid: { column: "providerUid", rule: isRequiredUid } },
  mutable: { externalGroupId: isExternalId, roleUid: isRequiredUid, scope: isRequiredUid },
});

/** Converts a stored mapping to version 2. */
export function groupMappingToProto(row: GroupMappingRow): ExternalGroupRoleMapping {
  return create(ExternalGroupRoleMappingSchema, {
    uid: row.uid,
    identityProviderUid: row.providerUid,
    externalGroupId: row.externalGroupId,
    roleUid: row.roleUid,
    scope: row.scope,
    createTime: timestampOf(row.createTimeMs),
  });
}

const MAX_BATCH = 100;

const mappingView = {
  message: ExternalGroupRoleMappingSchema,
  readers: [ExternalGroupRoleMappingsService.method.listExternalGroupRoleMappings],
} as const;
const bodies = defineBodies(mappingView, findsResource(groupMappings, groupMappingToProto));

export interface GroupMappingDeps extends Pick<ResourceDeps, "listResources" | "ids"> {
  readonly quotas: Quotas;
  readonly store: Store;
}

/** Creates ExternalGroupRoleMappingsService. */
export function groupMappingsV2beta1({ listResources, ids, quotas, store }: GroupMappingDeps) {
  // The bindings of the members of a directory's group follow its mappings.
  const follow = async (call: UnaryCall, row: GroupMappingRow, change: "created" | "deleted") => {
    const { requestId, traceId, inbound, startMs } = call;
    const { remoteAddress = "" } = inbound;
    const request = { method: "mapping of a group", requestId, traceId, remoteAddress, tokenId: "" };
    await followMapping(call.tx, row, change, { ids, quotas, nowMs: startMs, request });
    const context = (nowMs: number) => ({ ids, quotas, nowMs, request });
    call.finish = () => finishWork(store, { providerUid: row.providerUid, context, nowMs: () => startMs });
  };
  const handlers: Handlers<typeof ExternalGroupRoleMappingsService> = {
    getExternalGroupRoleMapping: ({ uid }, { tx }) => getResource(tx, groupMappings, uid, groupMappingToProto),

    async listExternalGroupRoleMappings(request, call) {
      const { resources, ...page } = await listResources(call, groupMappings, request, groupMappingToProto);
      return { externalGroupRoleMappings: resources, ...page };
    },

    async createExternalGroupRoleMapping({ parent, externalGroupRoleMapping }, call) {
      const { tx, caller, startMs } = call;
      await getRow(tx, identityProviders, parent);
      const values = buildValues(groupMappings, externalGroupRoleMapping);
      await requireMappable(parent, values, call);
      const row = {
        uid: ids.newUid(parent),
        providerUid: parent,
        ...values,
        createdBy: caller.uid,
        createTimeMs: startMs,
      };
      if (await tx.table(groupMappingKind).hasSame(row)) throw alreadyExists(groupMappings, parent);
      await tx.table(groupMappingKind).insert(row);
      await follow(call, row, "created");
      return groupMappingToProto(row);
    },

    async deleteExternalGroupRoleMapping({ uid }, call) {
      const row = await getRow(call.tx, groupMappings, uid);
      await call.tx.table(groupMappingKind).delete(uid);
      await follow(call, row, "deleted");
      return {};
    },

    async batchDeleteExternalGroupRoleMappings({ parent, names }, call) {
      if (names.length > MAX_BATCH) throw invalidArgument({ field: "names", rule: `must be at most ${MAX_BATCH}` });
      const foreign = names.findIndex((uid) => parentOf(uid) !== parent);
      if (foreign >= 0)
        throw invalidArgument({ field: `names[${foreign}]`, subject: "names", rule: "must be mappings of the parent" });
      const deleted: ExternalGroupRoleMapping[] = [];
      for (const uid of new Set(names)) {
        const row = await call.tx.table(groupMappingKind).find(uid);
        if (row === undefined) continue;
        await call.tx.table(groupMappingKind).delete(uid);
        await follow(call, row, "deleted");
        deleted.push(groupMappingToProto(row));
      }
      return withOutcome({ parent, externalGroupRoleMappings: deleted }, { subjectUid: parent });
    },
  };
  const batchView = { message: BatchDeleteExternalGroupRoleMappingsResponseSchema, readers: mappingView.readers };
  return serve(ExternalGroupRoleMappingsService, handlers, {
    createExternalGroupRoleMapping: { body: bodies.created },
    deleteExternalGroupRoleMapping: { body: bodies.deleted },
    batchDeleteExternalGroupRoleMappings: { body: { view: batchView, response: "before" } },
  });
}

/**
 * Makes sure that the caller may map a role at a group of the provider's organisation: the caller holds what the role grants
 * there. The method has already required the right to bind at the root group.
 *
 * @throws ApiError INVALID_ARGUMENT or PERMISSION_DENIED; neither tells whether something of another organisation exists.
 */
async function requireMappable(
  providerUid: string,
  { scope, roleUid }: Pick<GroupMappingRow, "scope" | "roleUid">,
  call: UnaryCall,
): Promise<void> {
  const unknownScope = invalidArgument({ field: "scope", rule: "must be a group of the organisation" });
  if (rootOf(scope) !== rootOf(providerUid)) throw unknownScope;
  if ((await call.tx.table(groupKind).find(scope)) === undefined) throw unknownScope;
  const role = await requireAvailableRole(roleUid, scope, call.tx, "roleUid");
  requireGrantable(await call.callerAt(scope), role, scope);
}
