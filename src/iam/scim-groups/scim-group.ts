// The resource of groups that directories have sent by SCIM. Their directory alone creates, changes and deletes them.
import { create } from "@bufbuild/protobuf";
import { type ScimGroup, ScimGroupSchema } from "#gen/arbor/scim/v1/scim_pb.js";
import { timestampOf } from "../../kernel/time.js";
import { defineResource } from "../../pipeline/resource/define.js";
import { countRows } from "../../pipeline/resource/delete.js";
import { type ScimGroupRow, scimGroupKind } from "../../store/iam/scim-groups.js";
import { identityProviders } from "../identity-providers/identity-provider.js";

export const scimGroups = defineResource({
  displayName: "SCIM group",
  type: "arbor.dev/ScimGroup",
  plural: "SCIM groups",
  message: ScimGroupSchema,
  kind: scimGroupKind,
  parent: {
    type: identityProviders.type,
    // The deletion of the provider deletes them before, with their members, in parts.
    onDelete: { restrict: (tx, uid) => countRows(tx.table(scimGroupKind), "providerUid", uid) },
  },
  mutable: {},
});

/** Converts a stored group to its message. */
export function scimGroupToProto(row: ScimGroupRow): ScimGroup {
  const { uid, providerUid, displayName, externalId, mappedId } = row;
  return create(ScimGroupSchema, {
    ...{ uid, identityProvider: providerUid, displayName, externalId, externalGroupId: mappedId },
    createTime: timestampOf(row.createTimeMs),
    updateTime: timestampOf(row.updateTimeMs),
  });
}
