// The handlers of GroupsService in version 2beta1.

import { Capability } from "#gen/chainguard/capabilities/capabilities_pb.js";
import { type DeleteGroupRequest, GroupsService } from "#gen/chainguard/platform/iam/v2beta1/groups_pb.js";
import {
  failedPrecondition,
  invalidArgument,
  notFound,
  permissionDenied,
  resourceExhausted,
} from "../../kernel/errors.js";
import { builtinRoleUid, type Ids } from "../../kernel/ids.js";
import type { PageTokens } from "../../kernel/page-token.js";
import { depthOf, isUidp, MAX_GROUP_DEPTH } from "../../kernel/uidp.js";
import { bitOf, notFoundOrDenied } from "../../pipeline/auth/authorize.js";
import type { UnaryCall } from "../../pipeline/call.js";
import { type Handlers, serve, withOutcome, withPreparation } from "../../pipeline/method-table.js";
import { guardDelete } from "../../pipeline/resource/guard-delete.js";
import { listQueryOf } from "../../pipeline/resource/list-query.js";
import { patchOf, valuesOf } from "../../pipeline/resource/patch.js";
import type { GroupRow, Store, Tx } from "../../store/port.js";
import { insertBinding } from "../role-bindings/new-binding.js";
import { organisationDomainOf } from "./email-domain.js";
import { groupGuards, groups, groupView, lastOwnerOf, withdrawnOnlyIn } from "./group.js";
import { type RootCreation, requireRootCreation } from "./root-creation.js";

/** What the handlers need besides the call. */
export interface GroupsDeps {
  readonly tokens: PageTokens;
  readonly ids: Ids;
  readonly rootCreation: RootCreation;
  readonly store: Store;
}

/** Asking the owners of a group again makes sense after this long: a day, in milliseconds. */
const ACCESS_REQUEST_PAUSE_MS = 24 * 60 * 60 * 1000;

/** How many invites are deleted in one unit of work. */
const MAX_DELETED = 100;

const createGroups = [{ bit: bitOf(Capability.CAP_IAM_GROUPS_CREATE) }];
const owner = builtinRoleUid("owner");

/** GroupsService, ready to be served. */
export function groupsV2beta1({ tokens, ids, rootCreation, store }: GroupsDeps) {
  const handlers: Handlers<typeof GroupsService> = {
    getGroup({ uid }, { tx }) {
      const view = (row: GroupRow | undefined) => {
        if (row === undefined) throw notFound(groups, uid);
        return groupView(row);
      };
      const found = tx.groups.get(uid);
      return found instanceof Promise ? found.then(view) : view(found);
    },

    async listGroups(request, call) {
      const { tx, startMs } = call;
      const visible = await call.visibleGroups(request.uidp);
      const list = listQueryOf(groups, request, { method: "ListGroups", tokens, nowMs: startMs, visible });
      const page = await tx.groups.list(list.query);
      return { groups: page.rows.map(groupView), ...list.envelope(page) };
    },

    async createGroup({ parent, group }, call) {
      if (parent === "") await requireRootCreation(rootCreation, call);
      else await requireParent(parent, call);
      const { tx, startMs } = call;
      const row: GroupRow = {
        uid: ids.newUid(parent),
        parentUid: parent || null,
        ...valuesOf(groups, group),
        verified: false,
        kind: 0,
        resourceLimits: {},
        createdBy: parent === "" ? call.caller.uid : "",
        createTimeMs: startMs,
        updateTimeMs: startMs,
      };
      await tx.groups.insert(row);
      if (parent === "") await ownBy(call, row, ids);
      return groupView(row);
    },

    async updateGroup({ group, updateMask }, { tx, startMs }) {
      const uid = group?.uid ?? "";
      const before = await tx.groups.get(uid);
      if (before === undefined) throw notFound(groups, uid);
      const patch = patchOf(groups, group, updateMask, groupView(before));
      if (before.verified && patch.name !== undefined && patch.name !== before.name) throw frozenName();
      if (Object.keys(patch).length === 0) return groupView(before);
      const row = await tx.groups.update(uid, patch, startMs);
      if (row === undefined) throw notFound(groups, uid);
      return groupView(row);
    },

    deleteGroup: withPreparation({
      prepare: ({ uid }: DeleteGroupRequest, call) => deleteEndedInvites(uid, call.startMs, store),
      async handle({ uid }: DeleteGroupRequest, { tx, startMs }) {
        const row = await tx.groups.get(uid);
        if (row === undefined) throw notFound(groups, uid);
        await guardDelete(groups, groupGuards, uid, tx, startMs);
        await deleteOwnedResources(uid, tx);
        await tx.groups.delete(row);
        return {};
      },
    }),

    async lookupGroup(_, call) {
      return { group: groupView(await organisationOf(call)) };
    },

    async requestGroupAccess({ groupUid }, call) {
      const group = await organisationOf(call);
      if (group.uid !== groupUid) throw noOrganisation(groupUid);
      const { tx, caller, startMs } = call;
      const lastMs = await tx.accessRequests.lastMs(groupUid, caller.uid);
      if (lastMs !== undefined && startMs - lastMs < ACCESS_REQUEST_PAUSE_MS) {
        throw resourceExhausted(
          "access to this group was requested recently",
          lastMs + ACCESS_REQUEST_PAUSE_MS - startMs,
        );
      }
      await tx.accessRequests.put(groupUid, caller.uid, startMs);
      return withOutcome({}, { subjectUid: groupUid });
    },

    async checkEligibility(_, call) {
      return { eligible: (await domainOf(call)) !== undefined };
    },
  };
  return serve(GroupsService, handlers);
}

// What is part of a group and nothing by itself goes with it.
async function deleteOwnedResources(uid: string, tx: Tx): Promise<void> {
  await tx.roleBindings.deleteAutomatic(uid);
  const last = await lastOwnerOf(tx, uid);
  if (last) await tx.roleBindings.delete(last.uid);
  // As good as all have been deleted before this began.
  for (const invite of await tx.groupInvites.uidsWhere("groupUid", uid)) await tx.groupInvites.delete(invite);
  await tx.accountAssociations.delete(uid);
  await tx.terms.deleteOf(uid);
  await tx.accessRequests.deleteOf(uid);
  for (const one of (await withdrawnOnlyIn(tx, uid)) ?? []) await tx.advisories.delete(one);
  await tx.registry.deleteSettings(uid);
  for (let found = await subscriptions(); found.length > 0; found = await subscriptions()) {
    for (const one of found) await tx.subscriptions.delete(one);
  }

  async function subscriptions(): Promise<string[]> {
    return tx.subscriptions.uidsWhere("groupUid", uid);
  }
}

/**
 * Deletes the invites of a group that let nobody in any more, in units of work that are short however many
 * there are. What goes on to delete the group finds none, or few.
 */
export async function deleteEndedInvites(uid: string, nowMs: number, store: Pick<Store, "write">): Promise<number> {
  let deleted: number;
  let total = 0;
  do {
    deleted = await store.write(async (tx) => {
      const uids = await tx.groupInvites.byExpiry(uid, nowMs, false, MAX_DELETED);
      for (const one of uids) await tx.groupInvites.delete(one);
      return uids.length;
    });
    total += deleted;
  } while (deleted === MAX_DELETED);
  return total;
}

// The method is unscoped because a root has no parent to be allowed at, so the
// parent of any other group is checked here.
async function requireParent(parent: string, call: UnaryCall): Promise<void> {
  if (!isUidp(parent)) throw invalidArgument({ field: "parent", description: "parent must be the uid of a group" });
  const { tx } = call;
  const caller = await call.callerAt(parent);
  if (!caller.holds(createGroups, parent)) throw permissionDenied(`groups.create at ${parent}`);
  if ((await tx.groups.get(parent)) === undefined) {
    throw notFoundOrDenied(caller, parent, notFound(groups, parent), "groups.create");
  }
  if (depthOf(parent) >= MAX_GROUP_DEPTH) {
    throw invalidArgument({ field: "parent", description: `parent must lie less than ${MAX_GROUP_DEPTH} groups deep` });
  }
}

// Whoever creates an organisation owns it (spec gives nobody else a way in).
async function ownBy({ caller, tx, startMs }: UnaryCall, root: GroupRow, ids: Ids): Promise<void> {
  const joined = { identityUid: caller.uid, roleUid: owner };
  await insertBinding(tx, root.uid, joined, { ids, nowMs: startMs }, { automatic: true });
}

async function organisationOf(call: UnaryCall): Promise<GroupRow> {
  const domain = await domainOf(call);
  const verified = domain === undefined ? undefined : await call.tx.groups.verifiedRoot(domain);
  if (verified === undefined) throw noOrganisation("");
  return verified;
}

async function domainOf({ tx, caller }: UnaryCall): Promise<string | undefined> {
  return organisationDomainOf((await tx.identities.get(caller.uid))?.email ?? "");
}

// One text for every cause: none says whether the organisation exists.
function noOrganisation(uid: string) {
  return notFound(groups, uid, "no verified organisation matches the caller's e-mail domain");
}

function frozenName() {
  return failedPrecondition("GROUP_VERIFIED", "cannot rename a verified group");
}
