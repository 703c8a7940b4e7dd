// Lists of advisories as version 1 asks for them.
import { create } from "@bufbuild/protobuf";
import { UIDPFilterSchema } from "#gen/chainguard/platform/common/uidp_pb.js";
import { type AdvisoryFilter, OrderBy } from "#gen/chainguard/platform/vulnerabilities/v1/advisories_pb.js";
import {
  type EventTypeFilter,
  type ListAdvisoriesRequest,
  ListAdvisoriesRequestSchema,
  type ReviewState,
} from "#gen/chainguard/platform/vulnerabilities/v2beta1/advisories_pb.js";
import { invalidArgument } from "../../kernel/errors.js";
import { isUidp } from "../../kernel/uidp.js";

// By aliases and by the time of withdrawal the store keeps no order.
const orders: Readonly<Partial<Record<OrderBy, string>>> = {
  [OrderBy.ORDER_BY_UNSPECIFIED]: "uid",
  [OrderBy.ID_ASC]: "uid",
  [OrderBy.ID_DESC]: "uid desc",
  [OrderBy.CREATED_AT_ASC]: "created_at",
  [OrderBy.CREATED_AT_DESC]: "created_at desc",
  [OrderBy.UPDATED_AT_ASC]: "updated_at",
  [OrderBy.UPDATED_AT_DESC]: "updated_at desc",
};

/** More than any page holds: the largest size that is told from others. */
const LARGE_PAGE = 1_000n;

/**
 * The request of version 2 for the same list; undefined where filters exclude each other, so that
 * nothing can match.
 *
 * @throws ApiError INVALID_ARGUMENT for an id that is none, and an order that is not offered.
 */
export function listRequestOf(filter: AdvisoryFilter): ListAdvisoriesRequest | undefined {
  const { id, uidp = create(UIDPFilterSchema), pageSize, latestEventType, origin } = filter;
  if (id !== "" && !isUidp(id)) {
    throw invalidArgument({ field: "id", description: "id must be an id, such as the service assigns" });
  }
  if (id !== "" && uidp.ids.length > 0 && !uidp.ids.includes(id)) return undefined;
  return create(ListAdvisoriesRequestSchema, {
    uidp: id === "" ? uidp : { ...uidp, ids: [id] },
    advisoryIds: filter.advisoryIds,
    legacyAdvisoryIds: filter.legacyAdvisoryIds,
    artifactNames: filter.artifactName,
    artifactTypes: filter.artifactType,
    artifactArchitectures: filter.artifactArchitecture,
    componentNames: filter.componentName,
    componentTypes: filter.componentType,
    componentLocations: filter.componentLocation,
    aliases: filter.aliases,
    ...(origin !== undefined && { origin }),
    // The numbers are the same; of the types of events version 1 has one more.
    eventReviewStates: filter.eventStatuses as number[] as ReviewState[],
    eventAuthors: filter.eventAuthor,
    excludeEventAuthors: filter.excludeEventAuthor,
    eventReviewers: filter.eventReviewer,
    eventTypes: filter.eventTypes as number[] as EventTypeFilter[],
    ...(latestEventType !== undefined && { latestEventType: latestEventType as number as EventTypeFilter }),
    pageSize: pageSize < 0n ? -1 : Number(pageSize < LARGE_PAGE ? pageSize : LARGE_PAGE),
    pageToken: filter.pageToken,
    orderBy: orderOf(filter.orderBy),
  });
}

function orderOf(orderBy: OrderBy): string {
  const order = orders[orderBy];
  if (order !== undefined) return order;
  const offered = Object.keys(orders).map((number) => OrderBy[Number(number)]);
  throw invalidArgument({ field: "orderBy", description: `orderBy must be one of ${offered.join(", ")}` });
}
