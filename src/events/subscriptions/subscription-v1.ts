// Subscriptions, version 1: a view of SubscriptionsService.
import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import {
  type Subscription,
  SubscriptionSchema,
  Subscriptions,
} from "#gen/chainguard/platform/events/subscriptions_pb.js";
import type { SubscriptionsService } from "#gen/chainguard/platform/events/v2beta1/subscriptions_pb.js";
import { listInChunks, type ServedService, serve } from "../../pipeline/method-table.js";
import { operationsOf } from "../../pipeline/operations.js";
import { rowsInParts } from "../../pipeline/resource/whole-list.js";
import type { SubscriptionRow } from "../../store/port.js";
import { foundSubscription } from "./subscription-v2beta1.js";

/** Subscriptions, ready to be served. */
export function subscriptionsV1(served: ServedService<typeof SubscriptionsService>) {
  const v2 = operationsOf(served, { uid: "id", parent: "parentId" });
  return serve(Subscriptions, {
    async create({ parentId, subscription }, call) {
      const sent = { sink: subscription?.sink ?? "" };
      const { uid } = await v2.createSubscription({ parent: parentId, subscription: sent }, call);
      // Version 2 shows no times.
      return subscriptionV1(await foundSubscription(uid, call.tx));
    },

    list: listInChunks(rowsInParts((tx) => tx.subscriptions, subscriptionV1)),

    delete: ({ id }, call) => v2.deleteSubscription({ uid: id }, call),
  });
}

function subscriptionV1({ uid, sink, createTimeMs, updateTimeMs }: SubscriptionRow): Subscription {
  const times = { createdAt: timestampFromMs(createTimeMs), updatedAt: timestampFromMs(updateTimeMs) };
  return create(SubscriptionSchema, { id: uid, sink, ...times });
}
