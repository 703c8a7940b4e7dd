// ExternalGroupRoleMappings, version 1: a view of ExternalGroupRoleMappingsService.
import { create } from "@bufbuild/protobuf";
import {
  BatchDeleteExternalGroupRoleMappingsResponseSchema,
  type ExternalGroupRoleMapping,
  type ExternalGroupRoleMappingFilter,
  ExternalGroupRoleMappingSchema,
  ExternalGroupRoleMappings,
} from "#gen/chainguard/platform/iam/external_group_role_mappings_pb.js";
import type {
  ExternalGroupRoleMappingsService,
  ExternalGroupRoleMapping as MappingV2,
} from "#gen/chainguard/platform/iam/v2beta1/external_group_role_mappings_pb.js";
import { defineBodies } from "../../pipeline/body.js";
import { type Handlers, listInChunks, withOutcome } from "../../pipeline/handlers.js";
import { type ServedService, serve } from "../../pipeline/method-table.js";
import { createOperations } from "../../pipeline/operations.js";
import { defineFixedFields, requireCreated } from "../../pipeline/resource/fixed-fields.js";
import { findsResource } from "../../pipeline/resource/read.js";
import { requireUidFilter } from "../../pipeline/resource/rules.js";
import { type ChunkFilter, createChunkReader } from "../../pipeline/resource/unpaginated-list.js";
import { groupMappings, groupMappingToProto } from "./group-mapping.js";

const fixed = defineFixedFields(ExternalGroupRoleMappingSchema, {
  identityProviderUidp: { rule: "must be the parent of the mapping" },
});

const view = { message: ExternalGroupRoleMappingSchema, readers: [ExternalGroupRoleMappings.method.list] } as const;
const bodies = defineBodies(
  view,
  findsResource(groupMappings, (row) => toProtoV1(groupMappingToProto(row))),
);

/** Creates ExternalGroupRoleMappings of version 1. */
export function groupMappingsV1(served: ServedService<typeof ExternalGroupRoleMappingsService>) {
  const v2 = createOperations(served, { uid: "id", parent: "parentId", roleUid: "roleUidp", names: "ids" });
  const handlers: Handlers<typeof ExternalGroupRoleMappings> = {
    async create({ parentId, mapping }, call) {
      const { externalGroupId = "", roleUidp: roleUid = "", scope = "" } = mapping ?? {};
      const externalGroupRoleMapping = { externalGroupId, roleUid, scope };
      const created = await v2.createExternalGroupRoleMapping({ parent: parentId, externalGroupRoleMapping }, call);
      return requireCreated(fixed, mapping, toProtoV1(created));
    },

    get: async ({ uid }, call) => toProtoV1(await v2.getExternalGroupRoleMapping({ uid }, call)),

    list: listInChunks(createChunkReader(groupMappings, (row) => toProtoV1(groupMappingToProto(row)), parseFilter)),

    delete: ({ id }, call) => v2.deleteExternalGroupRoleMapping({ uid: id }, call),

    async batchDelete({ parentId, ids }, call) {
      const batch = await v2.batchDeleteExternalGroupRoleMappings({ parent: parentId, names: ids }, call);
      const items = batch.externalGroupRoleMappings.map(toProtoV1);
      return withOutcome({ parentId: batch.parent, items }, { subjectUid: parentId });
    },
  };
  const batchView = { message: BatchDeleteExternalGroupRoleMappingsResponseSchema, readers: view.readers };
  return serve(ExternalGroupRoleMappings, handlers, {
    create: { body: bodies.created },
    delete: { body: bodies.deleted },
    batchDelete: { body: { view: batchView, response: "before" } },
  });
}

function parseFilter({ identityProviderUidp, ...request }: ExternalGroupRoleMappingFilter): ChunkFilter {
  const providerUid = requireUidFilter("identityProviderUidp", identityProviderUidp);
  return { request, ...(providerUid !== "" && { equals: { providerUid } }) };
}

// A mapping never changes, so both times are that of its creation.
function toProtoV1({ uid, createTime, ...same }: MappingV2): ExternalGroupRoleMapping {
  const { identityProviderUid, externalGroupId, roleUid, scope } = same;
  return create(ExternalGroupRoleMappingSchema, {
    ...{ id: uid, identityProviderUidp: identityProviderUid, externalGroupId, roleUidp: roleUid, scope },
    ...(createTime && { createdAt: createTime, updatedAt: createTime }),
  });
}
