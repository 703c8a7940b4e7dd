// The group invite resource: its definition, its code, how version 2 shows it, and its handlers in version 2beta1.

import { randomBytes } from "node:crypto";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import type { Duration } from "@bufbuild/protobuf/wkt";
import { GroupInvites } from "#gen/chainguard/platform/iam/group_invites_pb.js";
import { GroupInvitesService as StableGroupInvitesService } from "#gen/chainguard/platform/iam/v2/group_invites_pb.js";
import {
  type GroupInvite,
  GroupInviteSchema,
  GroupInvitesService,
} from "#gen/chainguard/platform/iam/v2beta1/group_invites_pb.js";
import { sha256 } from "../../kernel/digest.js";
import { breakRule } from "../../kernel/errors.js";
import { timestampOf } from "../../kernel/time.js";
import { type BodyView, defineBodies } from "../../pipeline/body.js";
import type { Handlers } from "../../pipeline/handlers.js";
import { type FormerPath, serve } from "../../pipeline/method-table.js";
import { defineResource } from "../../pipeline/resource/define.js";
import { deleteRows, MAX_COUNTED } from "../../pipeline/resource/delete.js";
import { immutable } from "../../pipeline/resource/fixed-fields.js";
import { buildPatch, buildValues } from "../../pipeline/resource/patch.js";
import { createsInScope } from "../../pipeline/resource/quota.js";
import { findsResource, getRow, type ResourceDeps } from "../../pipeline/resource/read.js";
import { type FieldRule, isAnything, isPrintable } from "../../pipeline/resource/rules.js";
import { type GroupInviteRow, groupInviteKind } from "../../store/iam/group-invites.js";
import { type RoleRow, roleKind } from "../../store/iam/roles.js";
import type { Tx } from "../../store/transaction.js";
import { groups } from "../groups/group.js";
import { readInviteTimeMs } from "../identities/revocation.js";
import { requireGrantable } from "../rights.js";
import { listCapabilities } from "../roles/capability-names.js";
import { requireAvailableRole } from "../roles/role.js";

const MAX_TTL_MS = 365 * 24 * 60 * 60 * 1000;
const EMAIL = /^[^\s@]{1,64}@[^\s@]{1,190}$/;

const isTtl: FieldRule = (value, field) => {
  if (value === undefined) return breakRule(field, "is required");
  const ms = durationToMs(value as Duration);
  return ms > 0 && ms <= MAX_TTL_MS ? undefined : breakRule(field, "must be more than 0 and at most 365 days");
};

/** The rule for the address that an invite is for; empty for an invite for everybody. */
export const isEmail: FieldRule = (value, field) =>
  value === "" || (EMAIL.test(String(value)) && isPrintable(String(value)))
    ? undefined
    : breakRule(field, "must be an e-mail address");

export const groupInvites = defineResource({
  displayName: "group invite",
  type: "iam.chainguard.dev/GroupInvite",
  plural: "group invites",
  message: GroupInviteSchema,
  kind: groupInviteKind,
  // An expired invite lets nobody in, so it does not keep the group.
  parent: {
    type: "iam.chainguard.dev/Group",
    onDelete: {
      restrict: async (tx, uid, nowMs) =>
        (await tx.table(groupInviteKind).findByExpiry(uid, nowMs, "live", MAX_COUNTED + 1)).length,
      cascade: (tx, uid) => deleteRows(tx.table(groupInviteKind), "groupUid", uid),
    },
  },
  createdBy: [createsInScope(GroupInvitesService.method.createGroupInvite), createsInScope(GroupInvites.method.create)],
  stable: StableGroupInvitesService,
  filters: { keyId: { column: "keyId" } },
  defaultOrder: "created_at desc",
  mutable: { email: isEmail, ttl: isTtl, singleUse: isAnything },
  fixed: { roleUid: immutable("create another invite") },
});

/** Converts a duration to whole milliseconds, rounded down. */
function durationToMs({ seconds, nanos }: Duration): number {
  return Number(seconds) * 1000 + Math.floor(nanos / 1_000_000);
}

/** Creates a code with 128 secret bits. The store keeps the id of the key and a hash of the secret. */
export function createInviteCode(group: string): { code: string } & Pick<GroupInviteRow, "keyId" | "codeHash"> {
  const keyId = randomBytes(8).toString("hex");
  const secret = randomBytes(16).toString("hex");
  const code = Buffer.from(JSON.stringify({ grp: group, kid: keyId, sec: secret })).toString("base64url");
  return { code, keyId, codeHash: sha256(secret).toString("hex") };
}

/** Converts a stored invite to version 2. Only the response to its creation has the `code`. */
export function groupInviteToProto(row: GroupInviteRow, role: RoleRow | undefined, code = ""): GroupInvite {
  const view: MessageInitShape<typeof GroupInviteSchema> = {
    uid: row.uid,
    roleUid: row.roleUid,
    email: row.email,
    expirationTime: timestampOf(row.expireTimeMs),
    singleUse: row.singleUse,
    code,
    keyId: row.keyId,
    createTime: timestampOf(row.createTimeMs),
  };
  if (role) {
    const { uid, name, description } = role;
    view.role = { uid, name, description, capabilities: listCapabilities(role.capabilities) };
  }
  return create(GroupInviteSchema, view);
}

/** How bodies of the audit log show invites: never the code, and no more than published events have. */
export const groupInviteView = {
  message: GroupInviteSchema,
  readers: [GroupInvitesService.method.listGroupInvites],
  only: ["uid", "expirationTime"],
} as const satisfies BodyView;

const bodies = defineBodies(
  groupInviteView,
  findsResource(groupInvites, (row) => groupInviteToProto(row, undefined)),
);

// Those of version 1 with the prefix of version 2 (docs/v1.md).
const formerPaths: readonly FormerPath[] = [{ current: "/groupInvites", former: "/group_invites" }];

/** Creates GroupInvitesService. */
export function groupInvitesV2beta1({ listResources, ids }: Pick<ResourceDeps, "listResources" | "ids">) {
  const handlers: Handlers<typeof GroupInvitesService> = {
    async getGroupInvite({ uid }, { tx }) {
      return toProto(await getRow(tx, groupInvites, uid), tx);
    },

    async listGroupInvites(request, call) {
      const { resources, ...page } = await listResources(call, groupInvites, request, (row) => toProto(row, call.tx));
      return { groupInvites: await Promise.all(resources), ...page };
    },

    async createGroupInvite({ parent, groupInvite }, call) {
      const { tx, caller } = call;
      await getRow(tx, groups, parent);
      const { email, ttl, singleUse } = buildValues(groupInvites, groupInvite);
      const role = await requireAvailableRole(groupInvite?.roleUid ?? "", parent, tx, "roleUid");
      requireGrantable(caller, role, parent);
      const { code, ...key } = createInviteCode(parent);
      // A revocation of all tokens of the caller voids the invites from before it.
      const createTimeMs = await readInviteTimeMs(tx, caller.uid);
      const row: GroupInviteRow = {
        uid: ids.newUid(parent),
        groupUid: parent,
        roleUid: role.uid,
        email,
        singleUse,
        ...key,
        createdBy: caller.uid,
        expireTimeMs: createTimeMs + (ttl ? durationToMs(ttl) : 0),
        createTimeMs,
        updateTimeMs: createTimeMs,
      };
      await tx.table(groupInviteKind).insert(row);
      return groupInviteToProto(row, role, code);
    },

    // The code stays valid. A new time to live counts from now.
    async updateGroupInvite({ groupInvite, updateMask }, { tx, caller, startMs }) {
      const before = await getRow(tx, groupInvites, groupInvite?.uid ?? "");
      const { email, singleUse, roleUid } = before;
      const { ttl, ...patch } = buildPatch(
        groupInvites,
        groupInvite,
        updateMask,
        create(GroupInviteSchema, { email, singleUse, roleUid }),
      );
      // Somebody who changes the address of an invite could accept it and gain its role.
      const role = await requireAvailableRole(before.roleUid, before.groupUid, tx, "roleUid");
      requireGrantable(caller, role, before.groupUid);
      if (ttl === undefined && Object.keys(patch).length === 0) return groupInviteToProto(before, role);
      const row = {
        ...before,
        ...patch,
        updateTimeMs: startMs,
        ...(ttl && { expireTimeMs: startMs + durationToMs(ttl) }),
      };
      await tx.table(groupInviteKind).replace(row);
      return groupInviteToProto(row, role);
    },

    // Deletion is idempotent, because clients repeat it.
    async deleteGroupInvite({ uid }, { tx }) {
      await tx.table(groupInviteKind).delete(uid);
      return {};
    },
  };
  const service = serve(GroupInvitesService, handlers, {
    createGroupInvite: { body: bodies.created },
    updateGroupInvite: { body: bodies.updated },
    deleteGroupInvite: { body: bodies.deleted },
  });
  return { ...service, formerPaths };
}

async function toProto(row: GroupInviteRow, tx: Tx): Promise<GroupInvite> {
  return groupInviteToProto(row, await tx.table(roleKind).find(row.roleUid));
}
