// ScimService: the state of the directory of an identity provider.
import type { MessageInitShape } from "@bufbuild/protobuf";
import { ScimService, type UnlinkedPersonSchema } from "#gen/arbor/scim/v1/scim_pb.js";
import { timestampOf } from "../../kernel/time.js";
import type { Handlers } from "../../pipeline/handlers.js";
import { serve } from "../../pipeline/method-table.js";
import { getRow } from "../../pipeline/resource/read.js";
import { identityKind } from "../../store/iam/identities.js";
import { type ScimUserRow, scimUserKind } from "../../store/iam/scim-users.js";
import type { ListQuery } from "../../store/lists/query.js";
import type { Tx } from "../../store/transaction.js";
import { identityProviders, identityProviderToProto } from "../identity-providers/identity-provider.js";

/** How many people each list has at most. */
const MAX_LISTED = 20;

/** Creates ScimService. */
export function scimStatusV1({ baseUrl }: { readonly baseUrl: string }) {
  const handlers: Handlers<typeof ScimService> = {
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
