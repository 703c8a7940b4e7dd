// The handlers of AdvisoriesService in version 2beta1, and the filters of its lists.
import {
  AdvisoriesService,
  EventTypeFilter,
  type ListAdvisoriesRequest,
} from "#gen/chainguard/platform/vulnerabilities/v2beta1/advisories_pb.js";
import { type FieldViolation, invalidArgument } from "../../kernel/errors.js";
import { serve } from "../../pipeline/method-table.js";
import { getRow, type ResourceDeps } from "../../pipeline/resource/read.js";
import { isPrintable } from "../../pipeline/resource/rules.js";
import { type AdvisoryRow, advisoryKind } from "../../store/advisories/advisories.js";
import type { AdvisoryEventRow } from "../../store/tables/advisories.js";
import type { Tx } from "../../store/transaction.js";
import { advisories, advisoryToProto } from "./advisory.js";
import { MAX_ADVISORY_REQUEST } from "./advisory-rules.js";

export function advisoriesV2beta1({ listResources }: Pick<ResourceDeps, "listResources">) {
  return serve(
    AdvisoriesService,
    {
      async getAdvisory({ uid }, { tx }) {
        const row = await getRow(tx, advisories, uid);
        return advisoryToProto(row, await tx.table(advisoryKind).listEvents([uid]));
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
  for (const event of await tx.table(advisoryKind).listEvents([...events.keys()]))
    events.get(event.advisoryUid)?.push(event);
  return rows.map((row) => toProto(row, events.get(row.uid) ?? []));
}

const MAX_VALUES = 1_000;
const MAX_QUERY = 256;

// An index finds the rows of each of these filters, so each has a statement of its own.
const selective = ["advisoryIds", "legacyAdvisoryIds", "artifactNames", "componentNames", "aliases"] as const;

const usual = [
  "artifactTypes",
  "artifactArchitectures",
  "componentTypes",
  "componentLocations",
  "eventReviewStates",
  "eventAuthors",
  "excludeEventAuthors",
  "eventReviewers",
  "eventTypes",
] as const;

/**
 * Builds the filters of the store from a request. `origin` counts as an artifact name, because the service does
 * not know which packages are built from the same origin.
 *
 * @throws ApiError INVALID_ARGUMENT for more than 1,000 values in a filter, control characters, or a
 * query of more than 256 characters.
 */
export function buildAdvisoryFilters(request: ListAdvisoriesRequest): Record<string, string> {
  const { origin = "", query, latestEventType = EventTypeFilter.UNSPECIFIED } = request;
  const violations: FieldViolation[] = [];
  const addViolation = (field: string, rule: string) => violations.push({ field, rule });
  for (const field of [...selective, ...usual]) {
    if (request[field].length > MAX_VALUES) addViolation(field, `must be at most ${MAX_VALUES}`);
    // Databases reject some control characters, and no stored text has any.
    else if (!request[field].every((value) => isPrintable(String(value))))
      addViolation(field, "must not contain control characters");
  }
  if (!isPrintable(origin)) addViolation("origin", "must not contain control characters");
  if (!isPrintable(query)) addViolation("query", "must not contain control characters");
  if (query.length > MAX_QUERY) addViolation("query", `must be at most ${MAX_QUERY} characters`);
  if (violations.length > 0) throw invalidArgument(...violations);

  const filters: Record<string, string> = {};
  for (const field of selective) if (request[field].length > 0) filters[field] = JSON.stringify(request[field]);
  if (origin !== "") filters.artifactNames = JSON.stringify([origin]);

  const rest: Record<string, string> = {};
  for (const field of usual) rest[field] = JSON.stringify(request[field].map(String));
  // UNSPECIFIED matches every type.
  if (request.eventTypes.includes(EventTypeFilter.UNSPECIFIED)) rest.eventTypes = "[]";
  rest.latestEventType = JSON.stringify(latestEventType === 0 ? [] : [String(latestEventType)]);
  rest.query = buildLikePattern(query);
  const restricting = query !== "" || Object.values(rest).some((value) => value !== "[]" && value !== "%");
  return restricting ? { ...filters, ...rest } : filters;
}

// The special characters of `like` are escaped.
function buildLikePattern(query: string): string {
  return query === "" ? "%" : `%${query.toLowerCase().replace(/[\\%_]/g, "\\$&")}%`;
}
