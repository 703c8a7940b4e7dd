// What a role binding is, and how it shows in version 2: with what it joins.
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { type RoleBinding, RoleBindingSchema } from "#gen/chainguard/platform/iam/v2beta1/role_bindings_pb.js";
import { defineResource } from "../../pipeline/resource/define.js";
import { isRequiredUid } from "../../pipeline/resource/rules.js";
import type { HydratedBinding } from "../../store/port.js";
import { assumedBy } from "../identities/relationship.js";

/** The role binding resource. */
export const roleBindings = defineResource({
  noun: "role binding",
  type: "iam.chainguard.dev/RoleBinding",
  message: RoleBindingSchema,
  sort: ["uid", "created_at"],
  mutable: { identityUid: isRequiredUid, roleUid: isRequiredUid },
});

/** A stored binding as version 2 shows it. */
export function roleBindingView(row: HydratedBinding): RoleBinding {
  const view: MessageInitShape<typeof RoleBindingSchema> = {
    uid: row.uid,
    identity: { uid: row.identityUid, ...identityShown(row) },
    group: { uid: row.groupUid, name: row.groupName, description: row.groupDescription },
    role: { uid: row.roleUid, name: row.roleName, description: row.roleDescription },
    createTime: timestampFromMs(row.createTimeMs),
    identityUid: row.identityUid,
    roleUid: row.roleUid,
  };
  return create(RoleBindingSchema, view);
}

// People are bound by whoever knows their uid, and that can be worked out: only those who came by
// themselves, as creators of the organisation, by an invite or through its provider, show more than
// that. Otherwise a binding would tell anybody who they
// are, what their address is, and whether they are registered at all.
function identityShown(row: HydratedBinding) {
  const isPerson = !row.identityUid.includes("/");
  if (row.identityName === null || (isPerson && !row.automatic && !row.accepted)) return {};
  const upstream = row.identityRelationship ? assumedBy(row.identityRelationship) : undefined;
  return {
    name: row.identityName,
    description: row.identityDescription ?? "",
    issuer: upstream?.issuer ?? row.identityIssuer ?? "",
    subject: upstream?.subject ?? row.identitySubject ?? "",
    email: row.identityEmail ?? "",
  };
}
