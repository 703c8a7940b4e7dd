import { create } from "@bufbuild/protobuf";
import {
  type GroupInvite,
  GroupInviteSchema,
  type StoredGroupInvite,
  StoredGroupInviteSchema,
} from "#gen/chainguard/platform/iam/group_invites_pb.js";
import type { GroupInvite as GroupInviteV2 } from "#gen/chainguard/platform/iam/v2beta1/group_invites_pb.js";
import { capabilityNamesOf } from "../roles/capability-names.js";

/** An invite of version 2 as version 1 shows it to whoever created it, with its code. */
export function groupInviteV1(invite: GroupInviteV2): GroupInvite {
  return create(GroupInviteSchema, { ...shownOf(invite), code: invite.code });
}

/** An invite of version 2 as version 1 lists it, without its code. */
export function storedGroupInviteV1(invite: GroupInviteV2): StoredGroupInvite {
  const { email, singleUse } = invite;
  return create(StoredGroupInviteSchema, { ...shownOf(invite), email, singleUse });
}

// When an invite was last changed is not kept, so version 1 does not tell.
function shownOf({ uid, expirationTime, keyId, role, createTime }: GroupInviteV2) {
  return {
    ...{ id: uid, keyId },
    ...(expirationTime && { expiration: expirationTime }),
    ...(role && {
      role: {
        ...{ id: role.uid, name: role.name, description: role.description },
        capabilities: capabilityNamesOf(role.capabilities),
      },
    }),
    ...(createTime && { createdAt: createTime }),
  };
}
