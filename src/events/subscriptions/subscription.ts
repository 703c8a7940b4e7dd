// The subscription resource: its definition, the rule for sinks, and how version 2 shows it.
import { create } from "@bufbuild/protobuf";
import { Subscriptions } from "#gen/chainguard/platform/events/subscriptions_pb.js";
import { SubscriptionsService as StableSubscriptionsService } from "#gen/chainguard/platform/events/v2/subscriptions_pb.js";
import {
  type Subscription,
  SubscriptionSchema,
  SubscriptionsService,
} from "#gen/chainguard/platform/events/v2beta1/subscriptions_pb.js";
import { defineResource } from "../../pipeline/resource/define.js";
import { deleteRows } from "../../pipeline/resource/delete.js";
import { createsInScope } from "../../pipeline/resource/quota.js";
import type { FieldRule } from "../../pipeline/resource/rules.js";
import type { SubscriptionRow } from "../../store/port.js";

const MAX_SINK = 2_048;
// The authority, then the characters that RFC 3986, section 2 allows in a URL, without the `#` of a fragment.
const HTTPS_URL = /^https:\/\/([^/?]+)[\w.~:/?[\]@!$&'()*+,;=%-]*$/i;

/**
 * The rule for sinks: an https URL of at most 2048 characters without user and fragment. The host is
 * not resolved, because its address may change before an event is sent.
 */
export const isSink: FieldRule = (value, field) => {
  if (typeof value !== "string" || value === "") return `${field} is required`;
  const authority = value.length <= MAX_SINK ? HTTPS_URL.exec(value)?.[1]?.toLowerCase() : undefined;
  const host = authority !== undefined && URL.canParse(value) ? new URL(value).host : undefined;
  // URL parsers normalize some hosts, such as 0x7f.1, so the host must be normalized already.
  if (host !== undefined && (authority === host || authority === `${host}:443`)) return undefined;
  return `${field} must be an https URL of at most ${MAX_SINK} characters without user or fragment`;
};

/** The subscription resource. It cannot change after its creation. */
export const subscriptions = defineResource({
  displayName: "subscription",
  type: "events.chainguard.dev/Subscription",
  plural: "subscriptions",
  message: SubscriptionSchema,
  table: (tx) => tx.subscriptions,
  parent: {
    type: "iam.chainguard.dev/Group",
    onDelete: { cascade: (tx, uid) => deleteRows(tx.subscriptions, "groupUid", uid) },
  },
  quota: {
    name: "subscriptions",
    createdBy: [
      createsInScope(SubscriptionsService.method.createSubscription),
      createsInScope(Subscriptions.method.create),
    ],
  },
  stable: StableSubscriptionsService,
  sort: ["uid", "created_at"],
  mutable: { sink: isSink },
});

/** Converts a stored subscription to version 2. */
export function subscriptionToProto({ uid, sink }: SubscriptionRow): Subscription {
  return create(SubscriptionSchema, { uid, sink });
}
