// The handlers of TemporaryBindingsService: role bindings that end by themselves.
import { create } from "@bufbuild/protobuf";
import { type Timestamp, timestampMs } from "@bufbuild/protobuf/wkt";
import {
  type TemporaryBinding,
  TemporaryBindingSchema,
  TemporaryBindingsService,
} from "#gen/arbor/bindings/v1/temporary_bindings_pb.js";
import { UIDPFilterSchema } from "#gen/chainguard/platform/common/uidp_pb.js";
import { alreadyExists, type FieldViolation, invalidArgument } from "../../kernel/errors.js";
import { timestampOf } from "../../kernel/time.js";
import { isUidp, rootOf } from "../../kernel/uidp.js";
import { defineBodies } from "../../pipeline/body.js";
import type { Handlers } from "../../pipeline/handlers.js";
import { serve } from "../../pipeline/method-table.js";
import { requireContracted } from "../../pipeline/resource/contracted.js";
import { findsResource, getRow, type ResourceDeps } from "../../pipeline/resource/read.js";
import { isRequiredUid } from "../../pipeline/resource/rules.js";
import { type RoleBindingRow, roleBindingKind } from "../../store/iam/role-bindings.js";
import type { ListQuery } from "../../store/lists/query.js";
import type { Tx } from "../../store/transaction.js";
import { groups } from "../groups/group.js";
import { findConsent } from "../people/pending-bindings.js";
import { requireNotOperatorRole, requireOwner } from "../rights.js";
import { insertBinding, requireBindable } from "./create-binding.js";
import { requireManual, roleBindings, roleBindingView } from "./role-binding.js";

/** The first version whose servers know that bindings end. */
const SINCE = "1.13.0";

/** The last time that a Timestamp can be, at the end of the year 9999, in epoch milliseconds. */
const MAX_TIME_MS = 253_402_300_799_999;

const bodies = defineBodies(
  { message: TemporaryBindingSchema, readers: roleBindingView.readers },
  findsResource(roleBindings, toProto),
);

/** Creates TemporaryBindingsService. */
export function temporaryBindingsV1({ listResources, ids }: Pick<ResourceDeps, "listResources" | "ids">) {
  const handlers: Handlers<typeof TemporaryBindingsService> = {
    async createTemporaryBinding({ parent, identityUid, roleUid, endTime }, call) {
      const { tx, startMs } = call;
      await getRow(tx, groups, parent);
      const endMs = parseEnd(endTime, startMs);
      requireUids({ identityUid, roleUid });
      await requireKnownToAll(tx);
      const grant = { identityUid, roleUid };
      await requireBindable(parent, grant, call, { endMs });
      const existing = await tx.table(roleBindingKind).findSame(parent, identityUid, roleUid);
      // A client may repeat the call.
      if (existing !== undefined && existing.endTimeMs === endMs) return toProto(existing);
      if (existing !== undefined) throw alreadyExists(roleBindings, existing.uid);
      const consent = await findConsent(tx, identityUid, parent, call.caller.uid);
      return toProto(await insertBinding(tx, parent, grant, { ids, nowMs: startMs }, { ...consent, endTimeMs: endMs }));
    },

    async setBindingEnd({ uid, endTime }, call) {
      const { tx, startMs } = call;
      const before = await getRow(tx, roleBindings, uid);
      const endMs = endTime === undefined ? null : parseEnd(endTime, startMs);
      if (endMs === before.endTimeMs) return toProto(before);
      requireManual(before);
      requireNotOperatorRole(before.roleUid, `changing binding ${uid}`);
      if (endMs !== null) await requireKnownToAll(tx);
      if (isLater(endMs, before.endTimeMs)) await requireBindable(before.groupUid, before, call, { endMs });
      await tx.table(roleBindingKind).setEnd(uid, endMs, startMs);
      await requireOwner(tx, rootOf(uid));
      return toProto({ ...before, endTimeMs: endMs });
    },

    async listTemporaryBindings({ group, ...page }, call) {
      if (group !== "" && !isUidp(group)) {
        throw invalidArgument({ field: "group", rule: "must be a uid, such as the service assigns" });
      }
      const uidp = group === "" ? undefined : create(UIDPFilterSchema, { descendantsOf: group });
      const { resources, nextPageToken, totalCount } = await listResources(
        call,
        roleBindings,
        { ...page, ...(uidp && { uidp }), orderBy: "uid", skip: 0 },
        toProto,
        { readPage: (query: ListQuery) => call.tx.table(roleBindingKind).listEnding(query) },
      );
      return { bindings: resources, nextPageToken, totalCount };
    },
  };
  return serve(TemporaryBindingsService, handlers, {
    createTemporaryBinding: { body: bodies.created },
    setBindingEnd: { body: bodies.updated },
  });
}

// Servers of older versions would go on granting what has ended.
function requireKnownToAll(tx: Tx): Promise<void> {
  return requireContracted(tx, "a role binding that ends", SINCE);
}

function parseEnd(endTime: Timestamp | undefined, nowMs: number): number {
  if (endTime === undefined) throw invalidArgument({ field: "endTime", rule: "is required" });
  const ms = Math.floor(timestampMs(endTime));
  if (ms > nowMs && ms <= MAX_TIME_MS) return ms;
  throw invalidArgument({ field: "endTime", rule: "must be in the future, and at most in the year 9999" });
}

function requireUids(uids: Readonly<Record<"identityUid" | "roleUid", string>>): void {
  const violations: FieldViolation[] = [];
  for (const [field, value] of Object.entries(uids)) {
    const broken = isRequiredUid(value, field);
    if (broken !== undefined) violations.push({ ...broken, field });
  }
  if (violations.length > 0) throw invalidArgument(...violations);
}

function isLater(endMs: number | null, otherMs: number | null): boolean {
  return otherMs !== null && (endMs === null || endMs > otherMs);
}

function toProto(row: RoleBindingRow): TemporaryBinding {
  const { uid, groupUid, identityUid, roleUid, endTimeMs, createTimeMs } = row;
  return create(TemporaryBindingSchema, {
    ...{ uid, groupUid, identityUid, roleUid },
    ...(endTimeMs !== null && { endTime: timestampOf(endTimeMs) }),
    createTime: timestampOf(createTimeMs),
  });
}
