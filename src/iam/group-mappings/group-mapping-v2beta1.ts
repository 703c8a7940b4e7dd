// The handlers of ExternalGroupRoleMappingsService in version 2beta1: which role
// the members of a directory's group get.
import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import {
  type ExternalGroupRoleMapping,
  ExternalGroupRoleMappingSchema,
  ExternalGroupRoleMappingsService,
} from "#gen/chainguard/platform/iam/v2beta1/external_group_role_mappings_pb.js";
import { alreadyExists, invalidArgument, notFound } from "../../kernel/errors.js";
import { parentOf, rootOf } from "../../kernel/uidp.js";
import { serve, withOutcome } from "../../pipeline/method-table.js";
import { defineResource } from "../../pipeline/resource/define.js";
import { listQueryOf } from "../../pipeline/resource/list-query.js";
import { valuesOf } from "../../pipeline/resource/patch.js";
import { type FieldRule, isPrintable, isRequiredUid } from "../../pipeline/resource/rules.js";
import type { GroupMappingRow, Tx } from "../../store/port.js";
import { uidFilter } from "../groups/group-filter.js";
import type { IamDeps } from "../iam-deps.js";
import { identityProviders } from "../identity-providers/identity-provider.js";
import { requireGrantable } from "../rights.js";
import { requireAvailableRole } from "../roles/available-role.js";

const MAX_BATCH = 100;

const isExternalId: FieldRule = (value, field) =>
  value !== "" && String(value).length <= 256 && isPrintable(String(value))
    ? undefined
    : `${field} must be 1 to 256 characters`;

/** The mapping resource; made and deleted, never changed. */
export const groupMappings = defineResource({
  noun: "external group role mapping",
  type: "iam.chainguard.dev/ExternalGroupRoleMapping",
  message: ExternalGroupRoleMappingSchema,
  sort: ["uid", "created_at"],
  mutable: { externalGroupId: isExternalId, roleUid: isRequiredUid, scope: isRequiredUid },
});

/** ExternalGroupRoleMappingsService, ready to be served. */
export function groupMappingsV2beta1({ tokens, ids }: IamDeps) {
  return serve(ExternalGroupRoleMappingsService, {
    async getExternalGroupRoleMapping({ uid }, { tx }) {
      const row = await tx.groupMappings.get(uid);
      if (row === undefined) throw notFound(groupMappings, uid);
      return groupMappingView(row);
    },

    async listExternalGroupRoleMappings(request, call) {
      const { tx, startMs } = call;
      const providerUid = uidFilter("identityProviderUid", request.identityProviderUid);
      const equals = providerUid === "" ? {} : { equals: { providerUid } };
      const visible = await call.visibleGroups(request.uidp);
      const context = { method: "ListExternalGroupRoleMappings", tokens, nowMs: startMs, visible, ...equals };
      const list = listQueryOf(groupMappings, request, context);
      const page = await tx.groupMappings.list(list.query);
      return { externalGroupRoleMappings: page.rows.map(groupMappingView), ...list.envelope(page) };
    },

    async createExternalGroupRoleMapping({ parent, externalGroupRoleMapping }, { tx, caller, startMs }) {
      if ((await tx.identityProviders.get(parent)) === undefined) throw notFound(identityProviders, parent);
      const values = valuesOf(groupMappings, externalGroupRoleMapping);
      if (values.scope !== rootOf(parent)) {
        throw invalidArgument({ field: "scope", description: "scope must be the root group of the identity provider" });
      }
      const role = await requireAvailableRole(values.roleUid, values.scope, tx, "roleUid");
      requireGrantable(caller, role, values.scope);
      const row = { uid: ids.newUid(parent), providerUid: parent, ...values, createTimeMs: startMs };
      if (await isMapped(row, tx)) throw alreadyExists(groupMappings, parent);
      await tx.groupMappings.insert(row);
      return groupMappingView(row);
    },

    async deleteExternalGroupRoleMapping({ uid }, { tx }) {
      if ((await tx.groupMappings.get(uid)) === undefined) throw notFound(groupMappings, uid);
      await tx.groupMappings.delete(uid);
      return {};
    },

    async batchDeleteExternalGroupRoleMappings({ parent, names }, call) {
      if (names.length > MAX_BATCH)
        throw invalidArgument({ field: "names", description: `names must be at most ${MAX_BATCH}` });
      const foreign = names.findIndex((uid) => parentOf(uid) !== parent);
      if (foreign >= 0)
        throw invalidArgument({ field: `names[${foreign}]`, description: "names must be mappings of the parent" });
      const deleted: ExternalGroupRoleMapping[] = [];
      for (const uid of new Set(names)) {
        const row = await call.tx.groupMappings.get(uid);
        if (row === undefined) continue;
        await call.tx.groupMappings.delete(uid);
        deleted.push(groupMappingView(row));
      }
      return withOutcome({ parent, externalGroupRoleMappings: deleted }, { subjectUid: parent });
    },
  });
}

async function isMapped(row: GroupMappingRow, tx: Tx): Promise<boolean> {
  for (const uid of await tx.groupMappings.uidsWhere("providerUid", row.providerUid)) {
    const other = await tx.groupMappings.get(uid);
    const same = other?.externalGroupId === row.externalGroupId && other.roleUid === row.roleUid;
    if (same && other.scope === row.scope) return true;
  }
  return false;
}

/** A stored mapping as version 2 shows it. */
export function groupMappingView(row: GroupMappingRow): ExternalGroupRoleMapping {
  return create(ExternalGroupRoleMappingSchema, {
    uid: row.uid,
    identityProviderUid: row.providerUid,
    externalGroupId: row.externalGroupId,
    roleUid: row.roleUid,
    scope: row.scope,
    createTime: timestampFromMs(row.createTimeMs),
  });
}
