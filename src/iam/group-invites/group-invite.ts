// The group invite resource: its definition, its code, and how version 2 shows it.
import { createHash, randomBytes } from "node:crypto";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { type Duration, timestampFromMs } from "@bufbuild/protobuf/wkt";
import { GroupInvites } from "#gen/chainguard/platform/iam/group_invites_pb.js";
import { GroupInvitesService as StableGroupInvitesService } from "#gen/chainguard/platform/iam/v2/group_invites_pb.js";
import {
  type GroupInvite,
  GroupInviteSchema,
  GroupInvitesService,
} from "#gen/chainguard/platform/iam/v2beta1/group_invites_pb.js";
import { defineResource } from "../../pipeline/resource/define.js";
import { deleteRows } from "../../pipeline/resource/delete.js";
import { immutable } from "../../pipeline/resource/fixed-fields.js";
import { createsInScope } from "../../pipeline/resource/quota.js";
import { type FieldRule, isAnything, isPrintable } from "../../pipeline/resource/rules.js";
import type { GroupInviteRow, RoleRow } from "../../store/port.js";
import { listCapabilities } from "../roles/capability-names.js";

const MAX_TTL_MS = 365 * 24 * 60 * 60 * 1000;
const EMAIL = /^[^\s@]{1,64}@[^\s@]{1,190}$/;

const isTtl: FieldRule = (value, field) => {
  if (value === undefined) return `${field} is required`;
  const ms = durationToMs(value as Duration);
  return ms > 0 && ms <= MAX_TTL_MS ? undefined : `${field} must be more than 0 and at most 365 days`;
};

const isEmail: FieldRule = (value, field) =>
  value === "" || (EMAIL.test(String(value)) && isPrintable(String(value)))
    ? undefined
    : `${field} must be an e-mail address`;

/** The group invite resource. */
export const groupInvites = defineResource({
  displayName: "group invite",
  type: "iam.chainguard.dev/GroupInvite",
  plural: "group invites",
  message: GroupInviteSchema,
  table: (tx) => tx.groupInvites,
  // An expired invite lets nobody in, so it does not keep the group.
  parent: {
    type: "iam.chainguard.dev/Group",
    onDelete: {
      restrict: async (tx, uid, nowMs) => (await tx.groupInvites.findByExpiry(uid, nowMs, true, 1)).length > 0,
      cascade: (tx, uid) => deleteRows(tx.groupInvites, "groupUid", uid),
    },
  },
  quota: {
    name: "invites",
    createdBy: [
      createsInScope(GroupInvitesService.method.createGroupInvite),
      createsInScope(GroupInvites.method.create),
    ],
  },
  stable: StableGroupInvitesService,
  filters: { keyId: { column: "keyId" } },
  sort: ["uid", "created_at"],
  defaultOrder: "created_at desc",
  mutable: { email: isEmail, ttl: isTtl, singleUse: isAnything },
  fixed: { roleUid: immutable("create another invite") },
});

/** Converts a duration to whole milliseconds, rounded down. */
export function durationToMs({ seconds, nanos }: Duration): number {
  return Number(seconds) * 1000 + Math.floor(nanos / 1_000_000);
}

/** Creates a code with 128 secret bits. The store keeps the id of the key and a hash of the secret. */
export function createInviteCode(group: string): { code: string } & Pick<GroupInviteRow, "keyId" | "codeHash"> {
  const keyId = randomBytes(8).toString("hex");
  const secret = randomBytes(16).toString("hex");
  const code = Buffer.from(JSON.stringify({ grp: group, kid: keyId, sec: secret })).toString("base64url");
  return { code, keyId, codeHash: createHash("sha256").update(secret).digest("hex") };
}

/** Converts a stored invite to version 2. Only the response to its creation has the `code`. */
export function groupInviteToProto(row: GroupInviteRow, role: RoleRow | undefined, code = ""): GroupInvite {
  const view: MessageInitShape<typeof GroupInviteSchema> = {
    uid: row.uid,
    roleUid: row.roleUid,
    email: row.email,
    expirationTime: timestampFromMs(row.expireTimeMs),
    singleUse: row.singleUse,
    code,
    keyId: row.keyId,
    createTime: timestampFromMs(row.createTimeMs),
  };
  if (role) {
    const { uid, name, description } = role;
    view.role = { uid, name, description, capabilities: listCapabilities(role.capabilities) };
  }
  return create(GroupInviteSchema, view);
}
