// The handlers of GroupsService in version 2beta1.
import { type DeleteGroupRequest, GroupSchema, GroupsService } from "#gen/chainguard/platform/iam/v2beta1/groups_pb.js";
import {
  failedPrecondition,
  invalidArgument,
  notFound,
  notPermitted,
  permissionDenied,
  resourceExhausted,
} from "../../kernel/errors.js";
import { ANONYMOUS_UID, builtinRoleUid, type Ids } from "../../kernel/ids.js";
import { depthOf, isUidp, MAX_GROUP_DEPTH } from "../../kernel/uidp.js";
import { notFoundOrDenied } from "../../pipeline/auth/authorize.js";
import { type BodyView, defineBodies } from "../../pipeline/body.js";
import type { UnaryCall } from "../../pipeline/call.js";
import { type Handlers, withOutcome, withPreparation } from "../../pipeline/handlers.js";
import { serve } from "../../pipeline/method-table.js";
import { cascadeDelete, guardDelete } from "../../pipeline/resource/delete.js";
import { buildPatch, buildValues } from "../../pipeline/resource/patch.js";
import { findsResource, getResource, getRow, type ResourceDeps } from "../../pipeline/resource/read.js";
import { groupInviteKind } from "../../store/iam/group-invites.js";
import { type GroupRow, groupKind } from "../../store/iam/groups.js";
import { identityKind } from "../../store/iam/identities.js";
import { roleBindingKind } from "../../store/iam/role-bindings.js";
import type { Store } from "../../store/store.js";
import { insertBinding } from "../role-bindings/create-binding.js";
import { deleteEndedOf } from "../role-bindings/ended-bindings.js";
import { createGroups, findOrganisationDomain, groups, groupToProto } from "./group.js";

/** Who may create root groups: people, those who own one already, or nobody. */
export type RootCreation = "users" | "owners" | "off";

export interface GroupsDeps extends ResourceDeps {
  readonly rootCreation: RootCreation;
  readonly store: Store;
}

/** The interval between two requests for access to a group: a day, in milliseconds. */
const ACCESS_REQUEST_INTERVAL_MS = 24 * 60 * 60 * 1000;

/** How many invites are deleted in one unit of work. */
const MAX_DELETED = 100;

const owner = builtinRoleUid("owner");

/** How bodies of the audit log show groups. */
export const groupView = {
  message: GroupSchema,
  readers: [GroupsService.method.listGroups],
} as const satisfies BodyView;

const groupBodies = defineBodies(groupView, findsResource(groups, groupToProto));

/** Creates GroupsService. */
export function groupsV2beta1({ ids, listResources, definitions, rootCreation, store }: GroupsDeps) {
  const handlers: Handlers<typeof GroupsService> = {
    getGroup: ({ uid }, { tx }) => getResource(tx, groups, uid, groupToProto),

    async listGroups(request, call) {
      const { resources, ...page } = await listResources(call, groups, request, groupToProto);
      return { groups: resources, ...page };
    },

    async createGroup({ parent, group }, call) {
      if (parent === "") await requireRootCreation(rootCreation, call);
      else await requireParent(parent, call);
      const { tx, startMs } = call;
      const row: GroupRow = {
        uid: ids.newUid(parent),
        parentUid: parent || null,
        ...buildValues(groups, group),
        verified: false,
        kind: 0,
        resourceLimits: {},
        issuerGuard: {},
        createdBy: parent === "" ? call.caller.uid : "",
        createTimeMs: startMs,
        updateTimeMs: startMs,
      };
      await tx.table(groupKind).insert(row);
      if (parent === "") await bindOwner(call, row, ids);
      return groupToProto(row);
    },

    async updateGroup({ group, updateMask }, { tx, startMs }) {
      const uid = group?.uid ?? "";
      const before = await getRow(tx, groups, uid);
      const patch = buildPatch(groups, group, updateMask, groupToProto(before));
      if (before.verified && patch.name !== undefined && patch.name !== before.name) throw renameError();
      if (Object.keys(patch).length === 0) return groupToProto(before);
      const row = await tx.table(groupKind).update(uid, patch, startMs);
      if (row === undefined) throw notFound(groups, uid);
      return groupToProto(row);
    },

    deleteGroup: withPreparation({
      async prepare({ uid }: DeleteGroupRequest, call) {
        await deleteExpiredInvites(uid, call.startMs, store);
        await deleteEndedOf(uid, store, { ids, nowMs: call.startMs });
      },
      async handle({ uid }: DeleteGroupRequest, { tx, startMs }) {
        const row = await getRow(tx, groups, uid);
        await guardDelete(definitions, groups, uid, tx, startMs);
        await cascadeDelete(definitions, groups, uid, tx);
        await tx.accessRequests.deleteOf(uid);
        await tx.table(groupKind).delete(row.uid);
        return {};
      },
    }),

    async lookupGroup(_, call) {
      return { group: groupToProto(await getOrganisation(call)) };
    },

    async requestGroupAccess({ groupUid }, call) {
      const group = await getOrganisation(call);
      if (group.uid !== groupUid) throw noOrganisation(groupUid);
      const { tx, caller, startMs } = call;
      const lastMs = await tx.accessRequests.findLastMs(groupUid, caller.uid);
      if (lastMs !== undefined && startMs - lastMs < ACCESS_REQUEST_INTERVAL_MS) {
        throw resourceExhausted(
          "access to this group was requested recently",
          lastMs + ACCESS_REQUEST_INTERVAL_MS - startMs,
          "rate",
        );
      }
      await tx.accessRequests.put(groupUid, caller.uid, startMs);
      return withOutcome({}, { subjectUid: groupUid });
    },

    async checkEligibility(_, call) {
      return { eligible: (await findDomain(call)) !== undefined };
    },
  };
  return serve(GroupsService, handlers, {
    createGroup: { allowEmptyPath: true, body: groupBodies.created },
    updateGroup: { body: groupBodies.updated },
    deleteGroup: { body: groupBodies.deleted },
  });
}

/**
 * Deletes the expired invites of a group, in short units of work however many there are. The deletion of the
 * group that follows then has few rows to delete.
 */
export async function deleteExpiredInvites(uid: string, nowMs: number, store: Pick<Store, "write">): Promise<number> {
  let deleted: number;
  let total = 0;
  do {
    deleted = await store.write(async (tx) => {
      const uids = await tx.table(groupInviteKind).findByExpiry(uid, nowMs, "expired", MAX_DELETED);
      for (const one of uids) await tx.table(groupInviteKind).delete(one);
      return uids.length;
    });
    total += deleted;
  } while (deleted === MAX_DELETED);
  return total;
}

// The method is unscoped because a root has no parent, so the right to create at a parent is checked here.
async function requireParent(parent: string, call: UnaryCall): Promise<void> {
  if (!isUidp(parent)) throw invalidArgument({ field: "parent", rule: "must be the uid of a group" });
  const { tx } = call;
  const caller = await call.callerAt(parent);
  if (!caller.holds(createGroups, parent)) throw permissionDenied(`groups.create at ${parent}`);
  if ((await tx.table(groupKind).find(parent)) === undefined) {
    throw notFoundOrDenied(caller, parent, notFound(groups, parent), "groups.create");
  }
  if (depthOf(parent) >= MAX_GROUP_DEPTH) {
    throw invalidArgument({ field: "parent", rule: `must lie less than ${MAX_GROUP_DEPTH} groups deep` });
  }
}

// The creator of an organisation is its first owner.
async function bindOwner({ caller, tx, startMs }: UnaryCall, root: GroupRow, ids: Ids): Promise<void> {
  const grant = { identityUid: caller.uid, roleUid: owner };
  await insertBinding(tx, root.uid, grant, { ids, nowMs: startMs }, { automatic: true });
}

async function getOrganisation(call: UnaryCall): Promise<GroupRow> {
  const domain = await findDomain(call);
  const verified = domain === undefined ? undefined : await call.tx.table(groupKind).findVerifiedRoot(domain);
  if (verified === undefined) throw noOrganisation("");
  return verified;
}

async function findDomain({ tx, caller }: UnaryCall): Promise<string | undefined> {
  return findOrganisationDomain((await tx.table(identityKind).find(caller.uid))?.email ?? "");
}

// Every cause has the same text, so that callers cannot tell whether the organisation exists.
function noOrganisation(uid: string) {
  return notFound(groups, uid, "no verified organisation matches the caller's e-mail domain");
}

function renameError() {
  return failedPrecondition("GROUP_VERIFIED", "cannot rename a verified group");
}

// Identities of a group are workloads: an organisation that one of them creates has no person as its owner.
// People of an organisation's own provider and callers with a limited token create no root groups either.
async function requireRootCreation(rule: RootCreation, { caller, tx }: UnaryCall): Promise<void> {
  const isPerson = !caller.uid.includes("/") && caller.uid !== ANONYMOUS_UID && caller.providerUid === null;
  if (rule === "off") throw notPermitted("root groups are created on the host only");
  if (!isPerson)
    throw notPermitted("root groups are created by people only, who signed in at a login provider of the service");
  if (!caller.unlimited) throw notPermitted("root groups are created with a token that is not limited");
  if (rule === "owners" && !(await tx.table(roleBindingKind).hasRoleAtRoot(caller.uid, owner))) {
    throw notPermitted("root groups are created by people who own one only");
  }
}
