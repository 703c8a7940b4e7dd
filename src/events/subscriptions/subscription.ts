// Subscriptions: the resource with the rule for sinks, SubscriptionsService in version 2beta1, and version 1 as a view of
// it.

import { create } from "@bufbuild/protobuf";
import {
  Subscriptions,
  type Subscription as SubscriptionV1,
  SubscriptionSchema as SubscriptionV1Schema,
} from "#gen/chainguard/platform/events/subscriptions_pb.js";
import { SubscriptionsService as StableSubscriptionsService } from "#gen/chainguard/platform/events/v2/subscriptions_pb.js";
import {
  type Subscription,
  SubscriptionSchema,
  SubscriptionsService,
} from "#gen/chainguard/platform/events/v2beta1/subscriptions_pb.js";
import { groups } from "../../iam/groups/group.js";
import { isSink } from "../../kernel/field-rules.js";
import { timestampOf } from "../../kernel/time.js";
import { defineBodies } from "../../pipeline/body.js";
import { type Handlers, listInChunks } from "../../pipeline/handlers.js";
import { type ServedService, serve } from "../../pipeline/method-table.js";
import { createOperations } from "../../pipeline/operations.js";
import { defineResource } from "../../pipeline/resource/define.js";
import { countRows } from "../../pipeline/resource/delete.js";
import { buildValues } from "../../pipeline/resource/patch.js";
import { createsInScope } from "../../pipeline/resource/quota.js";
import { findsResource, getResource, getRow, type ResourceDeps } from "../../pipeline/resource/read.js";
import { createChunkReader } from "../../pipeline/resource/unpaginated-list.js";
import { type SubscriptionRow, subscriptionKind } from "../../store/iam/subscriptions.js";
import { beginPosition } from "../delivery/control.js";

/** The subscription resource. It cannot change after its creation. */
export const subscriptions = defineResource({
  displayName: "subscription",
  type: "events.chainguard.dev/Subscription",
  plural: "subscriptions",
  message: SubscriptionSchema,
  kind: subscriptionKind,
  parent: {
    type: "iam.chainguard.dev/Group",
    onDelete: { restrict: (tx, uid) => countRows(tx.table(subscriptionKind), "groupUid", uid) },
  },
  createdBy: [
    createsInScope(SubscriptionsService.method.createSubscription),
    createsInScope(Subscriptions.method.create),
  ],
  stable: StableSubscriptionsService,
  mutable: { sink: isSink },
});

/** Converts a stored subscription to version 2. */
function subscriptionToProto({ uid, sink }: SubscriptionRow): Subscription {
  return create(SubscriptionSchema, { uid, sink });
}

export function subscriptionsV2beta1({ listResources, ids }: Pick<ResourceDeps, "listResources" | "ids">) {
  const handlers: Handlers<typeof SubscriptionsService> = {
    getSubscription: ({ uid }, { tx }) => getResource(tx, subscriptions, uid, subscriptionToProto),

    async listSubscriptions(request, call) {
      const { resources, ...page } = await listResources(call, subscriptions, request, subscriptionToProto);
      return { subscriptions: resources, ...page };
    },

    async createSubscription({ parent, subscription }, call) {
      const { tx, startMs } = call;
      await getRow(tx, groups, parent);
      const row: SubscriptionRow = {
        uid: ids.newUid(parent),
        groupUid: parent,
        ...buildValues(subscriptions, subscription),
        createTimeMs: startMs,
        updateTimeMs: startMs,
      };
      await tx.table(subscriptionKind).insert(row);
      await beginPosition(tx, row.uid);
      return subscriptionToProto(row);
    },

    async deleteSubscription({ uid }, { tx }) {
      await getRow(tx, subscriptions, uid);
      await tx.table(subscriptionKind).delete(uid);
      return {};
    },
  };
  const bodies = defineBodies(
    { message: SubscriptionSchema, readers: [SubscriptionsService.method.listSubscriptions] },
    findsResource(subscriptions, subscriptionToProto),
  );
  return serve(SubscriptionsService, handlers, {
    createSubscription: { body: bodies.created },
    deleteSubscription: { body: bodies.deleted },
  });
}

/** Creates Subscriptions of version 1. */
export function subscriptionsV1(served: ServedService<typeof SubscriptionsService>) {
  const v2 = createOperations(served, { uid: "id", parent: "parentId" });
  const handlers: Handlers<typeof Subscriptions> = {
    async create({ parentId, subscription }, call) {
      const input = { sink: subscription?.sink ?? "" };
      const { uid } = await v2.createSubscription({ parent: parentId, subscription: input }, call);
      // Version 2 shows no times.
      return getResource(call.tx, subscriptions, uid, toProtoV1);
    },

    list: listInChunks(createChunkReader(subscriptions, toProtoV1)),

    delete: ({ id }, call) => v2.deleteSubscription({ uid: id }, call),
  };
  const bodies = defineBodies(
    { message: SubscriptionV1Schema, readers: [Subscriptions.method.list] },
    findsResource(subscriptions, toProtoV1),
  );
  return serve(Subscriptions, handlers, { create: { body: bodies.created }, delete: { body: bodies.deleted } });
}

function toProtoV1({ uid, sink, createTimeMs, updateTimeMs }: SubscriptionRow): SubscriptionV1 {
  const times = { createdAt: timestampOf(createTimeMs), updatedAt: timestampOf(updateTimeMs) };
  return create(SubscriptionV1Schema, { id: uid, sink, ...times });
}
