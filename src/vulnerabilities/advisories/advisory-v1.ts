// Advisories, version 1, which writes as well: a view of what advisory-changes does.

import { Advisories, type AdvisoryFilter } from "#gen/chainguard/platform/vulnerabilities/v1/advisories_pb.js";
import { notFound } from "../../kernel/errors.js";
import { parentOf } from "../../kernel/uidp.js";
import type { UnaryCall } from "../../pipeline/call.js";
import { serve } from "../../pipeline/method-table.js";
import { renameErrorFields } from "../../pipeline/operations.js";
import { listQueryOf } from "../../pipeline/resource/list-query.js";
import type { AdvisoryEventRow, AdvisoryRow, Tx } from "../../store/port.js";
import { advisories } from "./advisory.js";
import {
  createAdvisory,
  createEvent,
  foundEvent,
  updateAdvisory,
  updateEvent,
  withdrawAdvisory,
} from "./advisory-changes.js";
import { MAX_ADVISORY_REQUEST } from "./advisory-rules.js";
import { listRequestOf } from "./advisory-v1-list.js";
import { advisoryV1, eventV1, namesInV1, sentAdvisory, sentEvent } from "./advisory-v1-view.js";
import { type AdvisoryDeps, viewsOf } from "./advisory-v2beta1.js";
import { filtersOf } from "./filters.js";

const large = { maxRequestBytes: MAX_ADVISORY_REQUEST };

/** Advisories, ready to be served. */
export function advisoriesV1({ tokens, ids }: AdvisoryDeps) {
  return serve(
    Advisories,
    {
      create: ({ parentId, advisory }, call) =>
        inV1(async () => {
          const events = (advisory?.events ?? []).map(sentEvent);
          const sent = { groupUid: parentId, advisory: sentAdvisory(advisory), events };
          return shown(await createAdvisory(sent, ids, call), call.tx);
        }),

      list: (filter, call) => inV1(() => listed(filter, { tokens }, call)),

      update: (advisory, call) => inV1(async () => shown(await updateAdvisory(sentAdvisory(advisory), call), call.tx)),

      async delete({ id }, call) {
        await withdrawAdvisory(id, call);
        return {};
      },

      createAdvisoryEvent: ({ parentId, advisoryEvent }, call) =>
        inV1(async () =>
          eventV1(await createEvent({ advisoryUid: parentId, said: sentEvent(advisoryEvent) }, ids, call)),
        ),

      async listAdvisoryEvents({ parentId }, { tx }) {
        return { parentId, items: (await eventsAt(parentId, tx)).map(eventV1) };
      },

      updateAdvisoryEvent: (event, call) => inV1(async () => eventV1(await updateEvent(sentEvent(event), call))),
    },
    { create: large, update: large, list: large },
  );
}

async function listed(filter: AdvisoryFilter, { tokens }: Pick<AdvisoryDeps, "tokens">, call: UnaryCall) {
  const { tx, startMs } = call;
  const request = listRequestOf(filter);
  if (request === undefined) return { totalCount: 0n };
  const list = listQueryOf(advisories, request, {
    method: "vulnerabilities.v1.Advisories.List",
    tokens,
    nowMs: startMs,
    visible: await call.visibleGroups(request.uidp),
    equals: filtersOf(request),
  });
  const page = await tx.advisories.list(list.query);
  const { nextPageToken, totalCount } = list.envelope(page);
  const [group, ...others] = new Set(page.rows.map(({ groupUid }) => groupUid));
  const id = others.length === 0 ? (group ?? "") : "";
  return { id, items: await viewsOf(page.rows, advisoryV1, tx), nextPageToken, totalCount };
}

async function shown(row: AdvisoryRow, tx: Tx) {
  return advisoryV1(row, await tx.advisories.events([row.uid]));
}

// Those of an advisory, or the one that is named itself.
async function eventsAt(uid: string, tx: Tx): Promise<AdvisoryEventRow[]> {
  if ((await tx.advisories.get(uid)) !== undefined) return tx.advisories.events([uid]);
  if ((await tx.advisories.get(parentOf(uid) ?? "")) === undefined) throw notFound(advisories, uid);
  return [await foundEvent(uid, tx)];
}

async function inV1<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw renameErrorFields(error, namesInV1);
  }
}
