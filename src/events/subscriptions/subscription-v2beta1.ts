// The handlers of SubscriptionsService in version 2beta1.
import { SubscriptionsService } from "#gen/chainguard/platform/events/v2beta1/subscriptions_pb.js";
import { groups } from "../../iam/groups/group.js";
import { serve } from "../../pipeline/method-table.js";
import { buildValues } from "../../pipeline/resource/patch.js";
import { getResource, getRow, type ResourceDeps } from "../../pipeline/resource/read.js";
import type { SubscriptionRow } from "../../store/port.js";
import { subscriptions, subscriptionToProto } from "./subscription.js";

/** Creates SubscriptionsService. */
export function subscriptionsV2beta1({ listResources, ids }: Pick<ResourceDeps, "listResources" | "ids">) {
  return serve(SubscriptionsService, {
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
      await tx.subscriptions.insert(row);
      return subscriptionToProto(row);
    },

    async deleteSubscription({ uid }, { tx }) {
      await getRow(tx, subscriptions, uid);
      await tx.subscriptions.delete(uid);
      return {};
    },
  });
}
