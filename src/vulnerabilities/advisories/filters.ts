// The filters of lists of advisories, as the store knows them by name.
import {
  EventTypeFilter,
  type ListAdvisoriesRequest,
} from "#gen/chainguard/platform/vulnerabilities/v2beta1/advisories_pb.js";
import { type FieldViolation, invalidArgument } from "../../kernel/errors.js";
import { isPrintable } from "../../pipeline/resource/rules.js";

const MAX_VALUES = 1_000;
const MAX_QUERY = 256;

// Each of these makes a statement of its own, since an index finds the rows.
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
 * What the store is asked for. `origin` counts as the one artifact name: which packages are built
 * along with it is not known here.
 *
 * @throws ApiError INVALID_ARGUMENT for more than 1,000 values in a filter, control characters, or a
 * query of more than 256 characters.
 */
export function filtersOf(request: ListAdvisoriesRequest): Record<string, string> {
  const { origin = "", query, latestEventType = EventTypeFilter.UNSPECIFIED } = request;
  const violations: FieldViolation[] = [];
  const refuse = (field: string, rule: string) => violations.push({ field, description: `${field} ${rule}` });
  for (const field of [...selective, ...usual]) {
    if (request[field].length > MAX_VALUES) refuse(field, `must be at most ${MAX_VALUES}`);
    // Databases refuse some of them; nothing that is stored has any.
    else if (!request[field].every((value) => isPrintable(String(value))))
      refuse(field, "must not contain control characters");
  }
  if (!isPrintable(origin)) refuse("origin", "must not contain control characters");
  if (!isPrintable(query)) refuse("query", "must not contain control characters");
  if (query.length > MAX_QUERY) refuse("query", `must be at most ${MAX_QUERY} characters`);
  if (violations.length > 0) throw invalidArgument(...violations);

  const filters: Record<string, string> = {};
  for (const field of selective) if (request[field].length > 0) filters[field] = JSON.stringify(request[field]);
  if (origin !== "") filters.artifactNames = JSON.stringify([origin]);

  const rest: Record<string, string> = {};
  for (const field of usual) rest[field] = JSON.stringify(request[field].map(String));
  // Unspecified stands for anything, and so restricts nothing.
  if (request.eventTypes.includes(EventTypeFilter.UNSPECIFIED)) rest.eventTypes = "[]";
  rest.latestEventType = JSON.stringify(latestEventType === 0 ? [] : [String(latestEventType)]);
  rest.query = patternOf(query);
  const restricting = query !== "" || Object.values(rest).some((value) => value !== "[]" && value !== "%");
  return restricting ? { ...filters, ...rest } : filters;
}

/** What a query looks through: lower case, with a line break, which no query has, between the texts. */
export function searchedOf(texts: readonly string[]): string {
  return texts.join("\n").toLowerCase();
}

// Signs that `like` gives a meaning stand for themselves.
function patternOf(query: string): string {
  return query === "" ? "%" : `%${query.toLowerCase().replace(/[\\%_]/g, "\\$&")}%`;
}
