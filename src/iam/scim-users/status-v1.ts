// ScimService: the state of the directory of an identity provider, and its groups (iam/scim-groups).
import type { MessageInitShape } from "@bufbuild/protobuf";
import {
  ScimService,
  ScimWorkKind,
  type ScimWorkSchema,
  type UnlinkedPersonSchema,
} from "#gen/arbor/scim/v1/scim_pb.js";
import { limitsFor, type QuotaLimits } from "../../kernel/quotas.js";
import { timestampOf } from "../../kernel/time.js";
import { rootOf } from "../../kernel/uidp.js";
import type { Handlers } from "../../pipeline/handlers.js";
import { serve } from "../../pipeline/method-table.js";
import { getRow, type ResourceDeps } from "../../pipeline/resource/read.js";
import { groupKind } from "../../store/iam/groups.js";
import { identityKind } from "../../store/iam/identities.js";
import { scimGroupKind } from "../../store/iam/scim-groups.js";
import { type ScimUserRow, scimUserKind } from "../../store/iam/scim-users.js";
import type { ListQuery } from "../../store/lists/query.js";
import type { Tx } from "../../store/transaction.js";
import { identityProviders, identityProviderToProto } from "../identity-providers/identity-provider.js";
import { createListScimGroups } from "../scim-groups/list-groups-v1.js";

/** How many people each list has at most. */
const MAX_LISTED = 20;

export interface ScimServiceDeps extends Pick<ResourceDeps, "listResources"> {
  readonly baseUrl: string;
  /** The quotas that the settings say. */
  readonly limits: QuotaLimits;
}

/** Creates ScimService. */
export function scimV1({ baseUrl, limits, ...deps }: ScimServiceDeps) {
  const handlers: Handlers<typeof ScimService> = {
    listScimGroups: createListScimGroups(deps),

    async getScimStatus({ identityProvider }, { tx, startMs }) {
      const row = await getRow(tx, identityProviders, identityProvider);
      const { scim } = identityProviderToProto(row, { nowMs: startMs, baseUrl });
      const table = tx.table(scimUserKind);
      const rejected = await table.findRejected(identityProvider, MAX_LISTED);
      const unlinked = await table.findUnlinked(identityProvider, MAX_LISTED);
      return {
        identityProvider,
        ...(scim && { scim }),
        people: await count(tx, identityProvider),
        inactivePeople: await count(tx, identityProvider, { active: 0 }),
        linkedPeople: await count(tx, identityProvider, { linked: 1 }),
        rejected: rejected.map(rejectedToProto),
        rejectedPeople: BigInt(await table.countRejected(identityProvider)),
        unlinked: await unlinkedToProto(unlinked.uids, tx),
        unlinkedPeople: BigInt(unlinked.total),
        groups: BigInt(await tx.table(scimGroupKind).countOfProvider(identityProvider)),
        work: await readWork(tx, identityProvider, limits),
        workCount: BigInt(await tx.scimWork.count(identityProvider)),
      };
    },
  };
  return serve(ScimService, handlers);
}

// Without a filter the counters know. With one, lists count in steps, between which other calls run.
async function count(tx: Tx, providerUid: string, equals: NonNullable<ListQuery["filter"]["equals"]> = {}) {
  const filter = { childrenOf: providerUid, equals };
  const order = { field: "uid", descending: false };
  const { total } = await tx.table(scimUserKind).list({ visible: [providerUid], filter, order, skip: 0, limit: 1 });
  return BigInt(total);
}

function rejectedToProto({ uid, userName, externalId, identityUid, rejectTimeMs }: ScimUserRow) {
  return { uid, userName, externalId, identity: identityUid ?? "", rejectTime: timestampOf(rejectTimeMs ?? 0) };
}

async function unlinkedToProto(uids: readonly string[], tx: Tx) {
  const people: MessageInitShape<typeof UnlinkedPersonSchema>[] = [];
  for (const uid of uids) {
    const identity = await tx.table(identityKind).find(uid);
    if (identity === undefined) continue;
    const { name, email, emailUnverified, lastSeenTimeMs } = identity;
    people.push({ identity: uid, name, email: email || emailUnverified, lastSeenTime: timestampOf(lastSeenTimeMs) });
  }
  return people;
}

const workKinds = {
  group: ScimWorkKind.GROUP,
  members: ScimWorkKind.MEMBERS,
  person: ScimWorkKind.PERSON,
} as const;

async function readWork(tx: Tx, providerUid: string, settings: QuotaLimits) {
  const rows = await tx.scimWork.list(MAX_LISTED, providerUid);
  if (rows.length === 0) return [];
  const root = rootOf(providerUid);
  const limits = limitsFor((await tx.table(groupKind).find(root))?.resourceLimits, settings);
  const isFull = async (quota: "bindings" | "identityBindings", owner: string, within = "") =>
    (await tx.usage.count(quota, owner, limits[quota], within)) >= limits[quota];
  const fullQuota = (await isFull("bindings", root)) ? "bindings" : "";
  const work: MessageInitShape<typeof ScimWorkSchema>[] = [];
  for (const { kind, uid } of rows) {
    const shared = { kind: workKinds[kind], uid, fullQuota: kind === "members" ? "" : fullQuota };
    if (kind === "person") {
      const isOwnFull = fullQuota === "" && (await isFull("identityBindings", uid, root));
      const name = (await tx.table(identityKind).find(uid))?.name ?? "";
      work.push({ ...shared, name, ...(isOwnFull && { fullQuota: "identityBindings" }) });
    } else work.push({ ...shared, name: (await tx.table(scimGroupKind).find(uid))?.displayName ?? "" });
  }
  return work;
}
