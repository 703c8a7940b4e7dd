// Every service about telling other systems what happens, ready to be served.
import type { ServedService } from "../pipeline/method-table.js";
import { eventIdentitiesV1 } from "./identities-v1.js";
import { subscriptionsV1 } from "./subscriptions/subscription-v1.js";
import { type SubscriptionDeps, subscriptionsV2beta1 } from "./subscriptions/subscription-v2beta1.js";

/** The services. */
export function eventServices(deps: SubscriptionDeps): ServedService[] {
  const subscriptions = subscriptionsV2beta1(deps);
  return [subscriptions, subscriptionsV1(subscriptions), eventIdentitiesV1()];
}
