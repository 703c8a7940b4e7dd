import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import {
  type GroupInvite,
  GroupInviteSchema,
  type StoredGroupInvite,
  StoredGroupInviteSchema,
} from "#gen/chainguard/platform/iam/group_invites_pb.js";
import type { GroupInvite as GroupInviteV2 } from "#gen/chainguard/platform/iam/v2beta1/group_invites_pb.js";
import type { GroupInviteRow } from "../../store/port.js";
import { capabilityNamesOf } from "../roles/capability-names.js";

/** When an invite was made and changed, of which version 2 does not tell the latter. */
type Changed = Pick<GroupInviteRow, "createTimeMs" | "updateTimeMs"> | undefined;

/** An invite of version 2 as version 1 shows it to whoever created it, with its code. */
export function groupInviteV1(invite: GroupInviteV2, row: Changed): GroupInvite {
  return create(GroupInviteSchema, { ...shownOf(invite, row), code: invite.code });
}

/** An invite of version 2 as version 1 lists it, without its code. */
export function storedGroupInviteV1(invite: GroupInviteV2, row: Changed): StoredGroupInvite {
  const { email, singleUse } = invite;
  return create(StoredGroupInviteSchema, { ...shownOf(invite, row), email, singleUse });
}

function shownOf({ uid, expirationTime, keyId, role, createTime }: GroupInviteV2, row: Changed) {
  const updatedAt = row && timestampFromMs(Math.max(row.createTimeMs, row.updateTimeMs));
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
    ...(updatedAt && { updatedAt }),
  };
}
