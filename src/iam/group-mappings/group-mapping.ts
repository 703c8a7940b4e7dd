// The resource of external group role mappings: which role the members of a directory's group get.
import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { ExternalGroupRoleMappings } from "#gen/chainguard/platform/iam/external_group_role_mappings_pb.js";
import { ExternalGroupRoleMappingsService as StableMappingsService } from "#gen/chainguard/platform/iam/v2/external_group_role_mappings_pb.js";
import {
  type ExternalGroupRoleMapping,
  ExternalGroupRoleMappingSchema,
  ExternalGroupRoleMappingsService,
} from "#gen/chainguard/platform/iam/v2beta1/external_group_role_mappings_pb.js";
import { defineResource } from "../../pipeline/resource/define.js";
import { deleteRows } from "../../pipeline/resource/delete.js";
import { createsInScope } from "../../pipeline/resource/quota.js";
import { type FieldRule, isPrintable, isRequiredUid } from "../../pipeline/resource/rules.js";
import type { GroupMappingRow } from "../../store/port.js";

const isExternalId: FieldRule = (value, field) =>
  value !== "" && String(value).length <= 256 && isPrintable(String(value))
    ? undefined
    : `${field} must be 1 to 256 characters`;

/** The mapping resource. Mappings are created and deleted, and never change. */
export const groupMappings = defineResource({
  displayName: "external group role mapping",
  type: "iam.chainguard.dev/ExternalGroupRoleMapping",
  plural: "external group role mappings",
  message: ExternalGroupRoleMappingSchema,
  table: (tx) => tx.groupMappings,
  parent: {
    type: "iam.chainguard.dev/IdentityProvider",
    onDelete: { cascade: (tx, uid) => deleteRows(tx.groupMappings, "providerUid", uid) },
  },
  quota: {
    name: "mappings",
    createdBy: [
      createsInScope(ExternalGroupRoleMappingsService.method.createExternalGroupRoleMapping),
      createsInScope(ExternalGroupRoleMappings.method.create),
    ],
  },
  stable: StableMappingsService,
  filters: { identityProviderUid: { column: "providerUid", rule: isRequiredUid } },
  sort: ["uid", "created_at"],
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
    createTime: timestampFromMs(row.createTimeMs),
  });
}
