// Advisories, version 1, which also writes: a view of advisory-changes.
import {
  create,
  type DescMessage,
  fromBinary,
  type Message,
  type MessageInitShape,
  toBinary,
} from "@bufbuild/protobuf";
import { UIDPFilterSchema } from "#gen/chainguard/platform/common/uidp_pb.js";
import {
  Advisories,
  type Advisory,
  type AdvisoryEvent,
  AdvisoryEventSchema,
  type AdvisoryFilter,
  AdvisorySchema,
  OrderBy,
  type ReviewStatus,
} from "#gen/chainguard/platform/vulnerabilities/v1/advisories_pb.js";
import {
  type Advisory as AdvisoryV2,
  AdvisorySchema as AdvisoryV2Schema,
  type EventTypeFilter,
  type AdvisoryEvent as EventV2,
  AdvisoryEventSchema as EventV2Schema,
  type ListAdvisoriesRequest,
  ListAdvisoriesRequestSchema,
  type ReviewState,
} from "#gen/chainguard/platform/vulnerabilities/v2beta1/advisories_pb.js";
import { invalidArgument, notFound } from "../../kernel/errors.js";
import { timestampOf } from "../../kernel/time.js";
import { isUidp, parentOf } from "../../kernel/uidp.js";
import { defineBodies } from "../../pipeline/body.js";
import type { UnaryCall } from "../../pipeline/call.js";
import { serve } from "../../pipeline/method-table.js";
import { type FieldNames, renameErrorFields } from "../../pipeline/operations.js";
import {
  defineFixedFields,
  immutable,
  requireCreated,
  requireUpdated,
  setByService,
} from "../../pipeline/resource/fixed-fields.js";
import type { ResourceDeps } from "../../pipeline/resource/read.js";
import { type AdvisoryRow, advisoryKind } from "../../store/advisories/advisories.js";
import type { AdvisoryEventRow } from "../../store/tables/advisories.js";
import type { Tx } from "../../store/transaction.js";
import { advisories, advisoryToProto, eventToProto } from "./advisory.js";
import {
  createAdvisory,
  createEvent,
  getEvent,
  updateAdvisory,
  updateEvent,
  withdrawAdvisory,
} from "./advisory-changes.js";
import { MAX_ADVISORY_REQUEST } from "./advisory-rules.js";
import { addEvents, buildAdvisoryFilters } from "./advisory-v2beta1.js";

// The service ignores `author` and `reviewer` of requests, because clients send what they have read of other people's
// changes.
const fixedEvent = defineFixedFields(AdvisoryEventSchema, { timestamp: immutable() });
const fixedAdvisory = defineFixedFields(AdvisorySchema, {
  deletedAt: setByService("Delete withdraws an advisory"),
  advisoryId: setByService(),
  legacyAdvisoryID: immutable(),
  events: immutable("CreateAdvisoryEvent and UpdateAdvisoryEvent change events"),
});

/** The names of version 1 for the fields of version 2. */
const namesInV1: FieldNames = {
  uid: "id",
  legacyAdvisoryId: "legacyAdvisoryID",
  createTime: "timestamp",
  reviewState: "status",
  subpackage: "subpackageName",
  component: "componentName",
  artifactNames: "artifactName",
  artifactTypes: "artifactType",
  artifactArchitectures: "artifactArchitecture",
  componentNames: "componentName",
  componentTypes: "componentType",
  componentLocations: "componentLocation",
  eventReviewStates: "eventStatuses",
  eventAuthors: "eventAuthor",
  eventReviewers: "eventReviewer",
  excludeEventAuthors: "excludeEventAuthor",
};

// The store has no index for the orders by aliases and by the time of withdrawal.
const orders: Readonly<Partial<Record<OrderBy, string>>> = {
  [OrderBy.ORDER_BY_UNSPECIFIED]: "uid",
  [OrderBy.ID_ASC]: "uid",
  [OrderBy.ID_DESC]: "uid desc",
  [OrderBy.CREATED_AT_ASC]: "created_at",
  [OrderBy.CREATED_AT_DESC]: "created_at desc",
  [OrderBy.UPDATED_AT_ASC]: "updated_at",
  [OrderBy.UPDATED_AT_DESC]: "updated_at desc",
};

/** Larger than any page; greater sizes are treated as this one. */
const LARGE_PAGE = 1_000n;

const large = { maxRequestBytes: MAX_ADVISORY_REQUEST };

const readers = [Advisories.method.list] as const;
const bodies = defineBodies({ message: AdvisorySchema, readers }, async (uid, { tx }) => {
  const row = await tx.table(advisoryKind).find(uid);
  return row && toProtoV1(row, tx);
});
const eventBodies = defineBodies({ message: AdvisoryEventSchema, readers }, async (uid, { tx }) => {
  const row = (await tx.table(advisoryKind).listEvents([parentOf(uid) ?? ""])).find((event) => event.uid === uid);
  return row && eventToProtoV1(row);
});

/** Creates Advisories of version 1. */
export function advisoriesV1({ listResources, ids }: Pick<ResourceDeps, "listResources" | "ids">) {
  return serve(
    Advisories,
    {
      create: ({ parentId, advisory }, call) =>
        withV1Names(async () => {
          const events = (advisory?.events ?? []).map(eventFromV1);
          const input = { groupUid: parentId, advisory: advisoryFromV1(advisory), events };
          const created = await toProtoV1(await createAdvisory(input, ids, call), call.tx);
          return requireCreated(fixedAdvisory, advisory, created);
        }),

      list: (filter, call) => withV1Names(() => listAdvisories(filter, listResources, call)),

      update: (advisory, call) =>
        withV1Names(async () => {
          const updated = await toProtoV1(await updateAdvisory(advisoryFromV1(advisory), call), call.tx);
          requireUpdated(fixedAdvisory, withoutPeople(advisory), withoutPeople(updated));
          return updated;
        }),

      async delete({ id }, call) {
        await withdrawAdvisory(id, call);
        return {};
      },

      createAdvisoryEvent: ({ parentId, advisoryEvent }, call) =>
        withV1Names(async () => {
          const request = { advisoryUid: parentId, event: eventFromV1(advisoryEvent) };
          return requireCreated(fixedEvent, advisoryEvent, eventToProtoV1(await createEvent(request, ids, call)));
        }),

      async listAdvisoryEvents({ parentId }, { tx }) {
        return { parentId, items: (await readEvents(parentId, tx)).map(eventToProtoV1) };
      },

      updateAdvisoryEvent: (event, call) =>
        withV1Names(async () => {
          const updated = eventToProtoV1(await updateEvent(eventFromV1(event), call));
          return requireUpdated(fixedEvent, event, updated);
        }),
    },
    {
      create: { ...large, body: bodies.created },
      update: { ...large, body: bodies.updated },
      delete: { body: bodies.deleted },
      createAdvisoryEvent: { body: eventBodies.created },
      updateAdvisoryEvent: { body: eventBodies.updated },
      list: large,
    },
  );
}

async function listAdvisories(filter: AdvisoryFilter, listResources: ResourceDeps["listResources"], call: UnaryCall) {
  const request = parseFilter(filter);
  if (request === undefined) return { totalCount: 0n };
  const options = { method: "vulnerabilities.v1.Advisories.List", equals: buildAdvisoryFilters(request) };
  const page = await listResources(call, advisories, request, (row) => row, options);
  const { resources: rows, nextPageToken, totalCount } = page;
  const [group, ...others] = new Set(rows.map(({ groupUid }) => groupUid));
  const id = others.length === 0 ? (group ?? "") : "";
  return { id, items: await addEvents(rows, advisoryToProtoV1, call.tx), nextPageToken, totalCount };
}

async function toProtoV1(row: AdvisoryRow, tx: Tx) {
  return advisoryToProtoV1(row, await tx.table(advisoryKind).listEvents([row.uid]));
}

// The uid is that of an advisory or of one event.
async function readEvents(uid: string, tx: Tx): Promise<AdvisoryEventRow[]> {
  if ((await tx.table(advisoryKind).find(uid)) !== undefined) return tx.table(advisoryKind).listEvents([uid]);
  if ((await tx.table(advisoryKind).find(parentOf(uid) ?? "")) === undefined) throw notFound(advisories, uid);
  return [await getEvent(uid, tx)];
}

async function withV1Names<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw renameErrorFields(error, namesInV1);
  }
}

// Converts the filter to a request of version 2; undefined where its ids exclude each other, so that nothing matches.
function parseFilter(filter: AdvisoryFilter): ListAdvisoriesRequest | undefined {
  const { id, uidp = create(UIDPFilterSchema), pageSize, latestEventType, origin } = filter;
  if (id !== "" && !isUidp(id)) {
    throw invalidArgument({ field: "id", rule: "must be an id, such as the service assigns" });
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
    // The numbers are the same.
    eventReviewStates: filter.eventStatuses as number[] as ReviewState[],
    eventAuthors: filter.eventAuthor,
    excludeEventAuthors: filter.excludeEventAuthor,
    eventReviewers: filter.eventReviewer,
    eventTypes: filter.eventTypes as number[] as EventTypeFilter[],
    ...(latestEventType !== undefined && { latestEventType: latestEventType as number as EventTypeFilter }),
    pageSize: pageSize < 0n ? -1 : Number(pageSize < LARGE_PAGE ? pageSize : LARGE_PAGE),
    pageToken: filter.pageToken,
    orderBy: formatOrder(filter.orderBy),
  });
}

function formatOrder(orderBy: OrderBy): string {
  const order = orders[orderBy];
  if (order !== undefined) return order;
  const sortable = Object.keys(orders).map((number) => OrderBy[Number(number)]);
  throw invalidArgument({ field: "orderBy", rule: `must be one of ${sortable.join(", ")}` });
}

// The events come oldest first.
function advisoryToProtoV1(row: AdvisoryRow, events: readonly AdvisoryEventRow[]): Advisory {
  const { uid, createTime, updateTime, deleteTime, legacyAdvisoryId, ...same } = advisoryToProto(row, []);
  const { artifactType, artifactName, artifactArchitecture, aliases, advisoryId, author } = same;
  const { componentName, componentLocation, componentType } = same;
  const view: MessageInitShape<typeof AdvisorySchema> = {
    ...{ id: uid, artifactType, artifactName, artifactArchitecture, aliases, advisoryId, author },
    ...(componentName !== "" && { componentName }),
    ...(componentLocation !== "" && { componentLocation }),
    ...(componentType !== "" && { componentType }),
    ...(createTime && { createdAt: createTime }),
    ...(updateTime && { updatedAt: updateTime }),
    ...(deleteTime && { deletedAt: deleteTime }),
    ...(legacyAdvisoryId !== undefined && { legacyAdvisoryID: legacyAdvisoryId }),
    events: events.map(eventToProtoV1),
  };
  return create(AdvisorySchema, view);
}

// The fields that callers set.
function advisoryFromV1(advisory: Advisory = create(AdvisorySchema)): AdvisoryV2 {
  const { id, artifactType, artifactName, artifactArchitecture, aliases, legacyAdvisoryID } = advisory;
  const { componentName = "", componentLocation = "", componentType = "" } = advisory;
  return create(AdvisoryV2Schema, {
    ...{ uid: id, artifactType, artifactName, artifactArchitecture, aliases },
    ...{ componentName, componentLocation, componentType },
    ...(legacyAdvisoryID !== undefined && { legacyAdvisoryId: legacyAdvisoryID }),
  });
}

function eventToProtoV1(row: AdvisoryEventRow): AdvisoryEvent {
  const { uid, createTime, findings, author, reviewer, reviewState, issue, type } = eventToProto(row);
  const event = create(AdvisoryEventSchema, {
    ...{ id: uid, findings, author, reviewer, status: reviewState as number as ReviewStatus },
    ...(createTime && { timestamp: createTime, createdAt: createTime }),
    ...(issue !== undefined && { issue }),
    updatedAt: timestampOf(row.updateTimeMs),
  });
  if (type.case !== undefined) event.type = convertType(EventV2Schema, AdvisoryEventSchema, type);
  return event;
}

// The advisory with events that compare as equal whoever wrote and reviewed them.
function withoutPeople(advisory: Advisory): Advisory {
  return { ...advisory, events: advisory.events.map((event) => ({ ...event, author: "", reviewer: "" })) };
}

// The fields that callers set.
function eventFromV1(event: AdvisoryEvent = create(AdvisoryEventSchema)): EventV2 {
  const { id, timestamp, findings, status, issue, type } = event;
  const converted = create(EventV2Schema, {
    ...{ uid: id, findings, reviewState: status as number as ReviewState },
    ...(timestamp && { createTime: timestamp }),
    ...(issue !== undefined && { issue }),
  });
  if (type.case !== undefined) converted.type = convertType(AdvisoryEventSchema, EventV2Schema, type);
  return converted;
}

type TypeOf<M extends { type: { case?: string | undefined } }> = Exclude<M["type"], { case?: undefined }>;

// The types of events have the same names in both versions. Their messages differ in the names of some fields and
// agree in all numbers, as do the states of reviews and the reasons of false positives.
function convertType(
  from: typeof EventV2Schema,
  to: typeof AdvisoryEventSchema,
  type: TypeOf<EventV2>,
): TypeOf<AdvisoryEvent>;
function convertType(
  from: typeof AdvisoryEventSchema,
  to: typeof EventV2Schema,
  type: TypeOf<AdvisoryEvent>,
): TypeOf<EventV2>;
function convertType(from: DescMessage, to: DescMessage, type: { case: string; value: Message }): object {
  const bytes = toBinary(getTypeMessage(from, type.case), type.value);
  return { case: type.case, value: fromBinary(getTypeMessage(to, type.case), bytes) };
}

function getTypeMessage(event: DescMessage, type: string): DescMessage {
  const field = event.field[type];
  if (field?.fieldKind !== "message") throw new TypeError(`${event} has no type ${type}`);
  return field.message;
}
