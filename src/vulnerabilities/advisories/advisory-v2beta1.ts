// The handlers of AdvisoriesService in version 2beta1.
import { AdvisoriesService } from "#gen/chainguard/platform/vulnerabilities/v2beta1/advisories_pb.js";
import { serve } from "../../pipeline/method-table.js";
import { getRow, type ResourceDeps } from "../../pipeline/resource/read.js";
import type { AdvisoryEventRow, AdvisoryRow, Tx } from "../../store/port.js";
import { advisories, advisoryToProto } from "./advisory.js";
import { MAX_ADVISORY_REQUEST } from "./advisory-rules.js";
import { buildAdvisoryFilters } from "./filters.js";

/** Creates AdvisoriesService. */
export function advisoriesV2beta1({ listResources }: Pick<ResourceDeps, "listResources">) {
  return serve(
    AdvisoriesService,
    {
      async getAdvisory({ uid }, { tx }) {
        const row = await getRow(tx, advisories, uid);
        return advisoryToProto(row, await tx.advisories.events([uid]));
      },

      async listAdvisories(request, call) {
        const options = { equals: buildAdvisoryFilters(request) };
        const { resources, ...page } = await listResources(call, advisories, request, (row) => row, options);
        return { advisories: await addEvents(resources, advisoryToProto, call.tx), ...page };
      },
    },
    { listAdvisories: { maxRequestBytes: MAX_ADVISORY_REQUEST } },
  );
}

/**
 * Converts the advisories of a page together with their events, which one query reads.
 *
 * @param toProto receives the events of an advisory, oldest first
 */
export async function addEvents<V>(
  rows: readonly AdvisoryRow[],
  toProto: (row: AdvisoryRow, events: readonly AdvisoryEventRow[]) => V,
  tx: Tx,
): Promise<V[]> {
  const events = new Map<string, AdvisoryEventRow[]>(rows.map(({ uid }) => [uid, []]));
  for (const event of await tx.advisories.events([...events.keys()])) events.get(event.advisoryUid)?.push(event);
  return rows.map((row) => toProto(row, events.get(row.uid) ?? []));
}
