// The handlers of AdvisoriesService in version 2beta1.

import { AdvisoriesService } from "#gen/chainguard/platform/vulnerabilities/v2beta1/advisories_pb.js";
import { notFound } from "../../kernel/errors.js";
import type { Ids } from "../../kernel/ids.js";
import type { PageTokens } from "../../kernel/page-token.js";
import { serve } from "../../pipeline/method-table.js";
import { listQueryOf } from "../../pipeline/resource/list-query.js";
import type { AdvisoryEventRow, AdvisoryRow, Tx } from "../../store/port.js";
import { advisories, advisoryView } from "./advisory.js";
import { MAX_ADVISORY_REQUEST } from "./advisory-rules.js";
import { filtersOf } from "./filters.js";

/** What the handlers need besides the call. */
export interface AdvisoryDeps {
  readonly tokens: PageTokens;
  readonly ids: Ids;
}

/** AdvisoriesService, ready to be served. */
export function advisoriesV2beta1({ tokens }: Pick<AdvisoryDeps, "tokens">) {
  return serve(
    AdvisoriesService,
    {
      async getAdvisory({ uid }, { tx }) {
        const row = await tx.advisories.get(uid);
        if (row === undefined) throw notFound(advisories, uid);
        return advisoryView(row, await tx.advisories.events([uid]));
      },

      async listAdvisories(request, call) {
        const { tx, startMs } = call;
        const list = listQueryOf(advisories, request, {
          method: "ListAdvisories",
          tokens,
          nowMs: startMs,
          visible: await call.visibleGroups(request.uidp),
          equals: filtersOf(request),
        });
        const page = await tx.advisories.list(list.query);
        return { advisories: await viewsOf(page.rows, advisoryView, tx), ...list.envelope(page) };
      },
    },
    { listAdvisories: { maxRequestBytes: MAX_ADVISORY_REQUEST } },
  );
}

/**
 * The advisories of a page as `view` shows them; their events take one query.
 *
 * @param view is given the events of an advisory oldest first
 */
export async function viewsOf<V>(
  rows: readonly AdvisoryRow[],
  view: (row: AdvisoryRow, events: readonly AdvisoryEventRow[]) => V,
  tx: Tx,
): Promise<V[]> {
  const events = new Map<string, AdvisoryEventRow[]>(rows.map(({ uid }) => [uid, []]));
  for (const event of await tx.advisories.events([...events.keys()])) events.get(event.advisoryUid)?.push(event);
  return rows.map((row) => view(row, events.get(row.uid) ?? []));
}
