// Subscriptions, version 1: a view of SubscriptionsService.
import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import {
  type Subscription,
  SubscriptionSchema,
  Subscriptions,
} from "#gen/chainguard/platform/events/subscriptions_pb.js";
import type { SubscriptionsService } from "#gen/chainguard/platform/events/v2beta1/subscriptions_pb.js";
import { listInChunks } from "../../pipeline/handlers.js";
import { type ServedService, serve } from "../../pipeline/method-table.js";
import { operationsOf } from "../../pipeline/operations.js";
import { getResource } from "../../pipeline/resource/read.js";
import { createChunkReader } from "../../pipeline/resource/unpaginated-list.js";
import type { SubscriptionRow } from "../../store/port.js";
import { subscriptions } from "./subscription.js";

/** Creates Subscriptions of version 1. */
export function subscriptionsV1(served: ServedService<typeof SubscriptionsService>) {
  const v2 = operationsOf(served, { uid: "id", parent: "parentId" });
  return serve(Subscriptions, {
    async create({ parentId, subscription }, call) {
      const input = { sink: subscription?.sink ?? "" };
      const { uid } = await v2.createSubscription({ parent: parentId, subscription: input }, call);
      // Version 2 shows no times.
      return getResource(call.tx, subscriptions, uid, toProtoV1);
    },

    list: listInChunks(createChunkReader(subscriptions, toProtoV1)),

    delete: ({ id }, call) => v2.deleteSubscription({ uid: id }, call),
  });
}

function toProtoV1({ uid, sink, createTimeMs, updateTimeMs }: SubscriptionRow): Subscription {
  const times = { createdAt: timestampFromMs(createTimeMs), updatedAt: timestampFromMs(updateTimeMs) };
  return create(SubscriptionSchema, { id: uid, sink, ...times });
}
