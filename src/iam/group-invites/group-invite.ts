// What a group invite is: its fields and their rules, its code, and how it shows.
import { createHash, randomBytes } from "node:crypto";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { type Duration, timestampFromMs } from "@bufbuild/protobuf/wkt";
import { type GroupInvite, GroupInviteSchema } from "#gen/chainguard/platform/iam/v2beta1/group_invites_pb.js";
import { defineResource } from "../../pipeline/resource/define.js";
import { type FieldRule, isPrintable } from "../../pipeline/resource/rules.js";
import type { GroupInviteRow, RoleRow } from "../../store/port.js";
import { capabilitiesIn } from "../roles/capability-names.js";

const MAX_TTL_MS = 365 * 24 * 60 * 60 * 1000;
const EMAIL = /^[^\s@]{1,64}@[^\s@]{1,190}$/;

const isTtl: FieldRule = (value, field) => {
  if (value === undefined) return `${field} is required`;
  const ms = millisecondsOf(value as Duration);
  return ms > 0 && ms <= MAX_TTL_MS ? undefined : `${field} must be more than 0 and at most 365 days`;
};

const isEmail: FieldRule = (value, field) =>
  value === "" || (EMAIL.test(String(value)) && isPrintable(String(value)))
    ? undefined
    : `${field} must be an e-mail address`;

const isFlag: FieldRule = () => undefined;

/** The group invite resource. Its role is fixed when it is made. */
export const groupInvites = defineResource({
  noun: "group invite",
  type: "iam.chainguard.dev/GroupInvite",
  message: GroupInviteSchema,
  sort: ["uid", "created_at"],
  defaultOrder: "created_at desc",
  mutable: { email: isEmail, ttl: isTtl, singleUse: isFlag },
});

/** A duration in whole milliseconds, rounded down. */
export function millisecondsOf({ seconds, nanos }: Duration): number {
  return Number(seconds) * 1000 + Math.floor(nanos / 1_000_000);
}

/** A new code: 128 random bits that only its holder knows, and what finds and proves it in the store. */
export function newInviteCode(group: string): { code: string } & Pick<GroupInviteRow, "keyId" | "codeHash"> {
  const keyId = randomBytes(8).toString("hex");
  const secret = randomBytes(16).toString("hex");
  const code = Buffer.from(JSON.stringify({ grp: group, kid: keyId, sec: secret })).toString("base64url");
  return { code, keyId, codeHash: createHash("sha256").update(secret).digest("hex") };
}

/** A stored invite as version 2 shows it; `code` only in the answer to its creation. */
export function groupInviteView(row: GroupInviteRow, role: RoleRow | undefined, code = ""): GroupInvite {
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
    view.role = { uid, name, description, capabilities: capabilitiesIn(role.capabilities) };
  }
  return create(GroupInviteSchema, view);
}
