// ExternalGroupRoleMappings, version 1: a view of ExternalGroupRoleMappingsService.
import { create } from "@bufbuild/protobuf";
import {
  type ExternalGroupRoleMapping,
  type ExternalGroupRoleMappingFilter,
  ExternalGroupRoleMappingSchema,
  ExternalGroupRoleMappings,
} from "#gen/chainguard/platform/iam/external_group_role_mappings_pb.js";
import type {
  ExternalGroupRoleMappingsService,
  ExternalGroupRoleMapping as MappingV2,
} from "#gen/chainguard/platform/iam/v2beta1/external_group_role_mappings_pb.js";
import { listInChunks, type ServedService, serve, withOutcome } from "../../pipeline/method-table.js";
import { operationsOf } from "../../pipeline/operations.js";
import { type Asked, rowsInParts } from "../../pipeline/resource/whole-list.js";
import { uidFilter } from "../groups/group-filter.js";
import { groupMappingView } from "./group-mapping-v2beta1.js";

/** ExternalGroupRoleMappings, ready to be served. */
export function groupMappingsV1(served: ServedService<typeof ExternalGroupRoleMappingsService>) {
  const v2 = operationsOf(served, { uid: "id", parent: "parentId", roleUid: "roleUidp", names: "ids" });
  return serve(ExternalGroupRoleMappings, {
    async create({ parentId, mapping }, call) {
      const { externalGroupId = "", roleUidp: roleUid = "", scope = "" } = mapping ?? {};
      const externalGroupRoleMapping = { externalGroupId, roleUid, scope };
      return groupMappingV1(
        await v2.createExternalGroupRoleMapping({ parent: parentId, externalGroupRoleMapping }, call),
      );
    },

    get: async ({ uid }, call) => groupMappingV1(await v2.getExternalGroupRoleMapping({ uid }, call)),

    list: listInChunks(
      rowsInParts(
        (tx) => tx.groupMappings,
        (row) => groupMappingV1(groupMappingView(row)),
        asked,
      ),
    ),

    delete: ({ id }, call) => v2.deleteExternalGroupRoleMapping({ uid: id }, call),

    async batchDelete({ parentId, ids }, call) {
      const deleted = await v2.batchDeleteExternalGroupRoleMappings({ parent: parentId, names: ids }, call);
      const items = deleted.externalGroupRoleMappings.map(groupMappingV1);
      return withOutcome({ parentId: deleted.parent, items }, { subjectUid: parentId });
    },
  });
}

function asked({ identityProviderUidp, ...request }: ExternalGroupRoleMappingFilter): Asked {
  const providerUid = uidFilter("identityProviderUidp", identityProviderUidp);
  return { request, ...(providerUid !== "" && { equals: { providerUid } }) };
}

// A mapping never changes: both times are that of its creation.
function groupMappingV1({ uid, createTime, ...same }: MappingV2): ExternalGroupRoleMapping {
  const { identityProviderUid, externalGroupId, roleUid, scope } = same;
  return create(ExternalGroupRoleMappingSchema, {
    ...{ id: uid, identityProviderUidp: identityProviderUid, externalGroupId, roleUidp: roleUid, scope },
    ...(createTime && { createdAt: createTime, updatedAt: createTime }),
  });
}
