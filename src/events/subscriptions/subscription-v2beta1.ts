// The handlers of SubscriptionsService in version 2beta1.
import { SubscriptionsService } from "#gen/chainguard/platform/events/v2beta1/subscriptions_pb.js";
import { requireParentGroup } from "../../iam/groups/parent-group.js";
import { notFound } from "../../kernel/errors.js";
import type { Ids } from "../../kernel/ids.js";
import type { PageTokens } from "../../kernel/page-token.js";
import { serve } from "../../pipeline/method-table.js";
import { listQueryOf } from "../../pipeline/resource/list-query.js";
import { valuesOf } from "../../pipeline/resource/patch.js";
import type { SubscriptionRow, Tx } from "../../store/port.js";
import { subscriptions, subscriptionView } from "./subscription.js";

/** What the handlers need besides the call. */
export interface SubscriptionDeps {
  readonly tokens: PageTokens;
  readonly ids: Ids;
}

/** SubscriptionsService, ready to be served. */
export function subscriptionsV2beta1({ tokens, ids }: SubscriptionDeps) {
  return serve(SubscriptionsService, {
    async getSubscription({ uid }, { tx }) {
      return subscriptionView(await foundSubscription(uid, tx));
    },

    async listSubscriptions(request, call) {
      const { tx, startMs } = call;
      const context = {
        method: "ListSubscriptions",
        tokens,
        nowMs: startMs,
        visible: await call.visibleGroups(request.uidp),
      };
      const list = listQueryOf(subscriptions, request, context);
      const page = await tx.subscriptions.list(list.query);
      return { subscriptions: page.rows.map(subscriptionView), ...list.envelope(page) };
    },

    async createSubscription({ parent, subscription }, call) {
      const { tx, startMs } = call;
      await requireParentGroup(parent, call);
      const row: SubscriptionRow = {
        uid: ids.newUid(parent),
        groupUid: parent,
        ...valuesOf(subscriptions, subscription),
        createTimeMs: startMs,
        updateTimeMs: startMs,
      };
      await tx.subscriptions.insert(row);
      return subscriptionView(row);
    },

    async deleteSubscription({ uid }, { tx }) {
      await foundSubscription(uid, tx);
      await tx.subscriptions.delete(uid);
      return {};
    },
  });
}

/**
 * The subscription of this uid.
 *
 * @throws ApiError NOT_FOUND; the pipeline words that for who may not know.
 */
export async function foundSubscription(uid: string, tx: Tx): Promise<SubscriptionRow> {
  const row = await tx.subscriptions.get(uid);
  if (row === undefined) throw notFound(subscriptions, uid);
  return row;
}
