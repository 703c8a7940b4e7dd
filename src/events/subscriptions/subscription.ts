// What a subscription is, where its sink may be, and how a stored one is shown.
import { create } from "@bufbuild/protobuf";
import { type Subscription, SubscriptionSchema } from "#gen/chainguard/platform/events/v2beta1/subscriptions_pb.js";
import { defineResource } from "../../pipeline/resource/define.js";
import type { FieldRule } from "../../pipeline/resource/rules.js";
import type { SubscriptionRow } from "../../store/port.js";

const MAX_SINK = 2_048;
// The authority, and behind it what RFC 3986, section 2 allows in a URL, less the `#` of a fragment.
const HTTPS_URL = /^https:\/\/([^/?]+)[\w.~:/?[\]@!$&'()*+,;=%-]*$/i;

/**
 * The rule for sinks: an https URL of at most 2048 characters without user and fragment. Where its host
 * leads is not asked: that may be another place by the time that there is something to send.
 */
export const isSink: FieldRule = (value, field) => {
  if (typeof value !== "string" || value === "") return `${field} is required`;
  const authority = value.length <= MAX_SINK ? HTTPS_URL.exec(value)?.[1]?.toLowerCase() : undefined;
  const host = authority !== undefined && URL.canParse(value) ? new URL(value).host : undefined;
  // URLs read some hosts as others, such as 0x7f.1: what is sent must be what is meant.
  if (host !== undefined && (authority === host || authority === `${host}:443`)) return undefined;
  return `${field} must be an https URL of at most ${MAX_SINK} characters without user or fragment`;
};

/** The subscription resource. Callers set its sink when they create it, and nothing later. */
export const subscriptions = defineResource({
  noun: "subscription",
  type: "events.chainguard.dev/Subscription",
  message: SubscriptionSchema,
  sort: ["uid", "created_at"],
  mutable: { sink: isSink },
});

/** A stored subscription as version 2 shows it. */
export function subscriptionView({ uid, sink }: SubscriptionRow): Subscription {
  return create(SubscriptionSchema, { uid, sink });
}
