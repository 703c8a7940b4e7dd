// One attempt to deliver an event: an HTTP request in the binary mode of CloudEvents 1.0, with a token of the issuer that
// says what was sent and to whom.
import type { KeyRing } from "../../issuer/keys/key-ring.js";
import { sha256 } from "../../kernel/digest.js";
import type { Ids } from "../../kernel/ids.js";
import { encodeJwt, type UnsignedJwt } from "../../kernel/jws.js";
import type { Clock } from "../../kernel/time.js";
import { rootOf } from "../../kernel/uidp.js";
import { VERSION } from "../../kernel/version.js";
import type { GuardedFetch, GuardedFetchError } from "../../outbound/guarded-fetch.js";
import { digestAttributes, formatHeaders, listAttributes } from "../attributes.js";
import { type CloudEvent, formatEventUuid } from "../cloud-event.js";

/** A subscription, as far as its sink is concerned. */
export interface Recipient {
  readonly uid: string;
  readonly groupUid: string;
  readonly sink: string;
  /** Whether its last attempt has failed. Such requests have slots of their own, because they may hang. */
  readonly isFailing?: boolean;
}

export interface SendOptions {
  readonly signal?: AbortSignal;
  /** How long to wait for a slot, in milliseconds; without an end by default. */
  readonly maxWaitMs?: number;
}

/**
 * The outcome of an attempt. `accepted` is a status of 2xx, `gone` one of 410. `busy`: not sent, because the limit of parallel
 * requests is reached, or the service itself failed.
 */
export interface Attempt {
  readonly kind: "accepted" | "gone" | "failed" | "busy";
  /** 0 without a response. */
  readonly status: number;
  /** Why it failed, for callers; empty where it was accepted. */
  readonly error: string;
  /** How long the sink wants no further request, in milliseconds. */
  readonly retryAfterMs?: number | undefined;
}

export interface SenderDeps {
  /** One that is for sinks alone. */
  readonly fetch: GuardedFetch;
  readonly keys: Pick<KeyRing, "getSigningKey" | "refresh">;
  readonly sign: (jwt: UnsignedJwt, organisation: string) => Promise<string>;
  readonly ids: Ids;
  readonly clock: Clock;
  /** The issuer URL. */
  readonly issuer: string;
  readonly baseUrl: string;
  /** Gets the origin of a sink that has answered with another status than 2xx, and the status. */
  readonly onRejected?: (reason: string) => void;
}

/** Sends events. */
export type Sender = ReturnType<typeof createSender>;

/** The life of a token, in seconds. */
export const DELIVERY_TOKEN_LIFE_S = 300;
/** The type of the event by which callers test a sink. */
export const TEST_TYPE = "arbor.events.test.v1";
/** A response of a sink is dropped; a longer one costs it the connection. */
const MAX_RESPONSE_BYTES = 64 * 1024;
/** How long a test waits for a slot, in milliseconds. */
const TEST_WAIT_MS = 10_000;

/** Creates the sender. */
export function createSender({ fetch, keys, sign, ids, clock, issuer, baseUrl, onRejected }: SenderDeps) {
  // One token for each request: an attempt may be a day later, and receivers accept a token once.
  async function createToken(event: CloudEvent, { uid, groupUid }: Recipient, data: Buffer): Promise<string> {
    // A receiver knows no key that was revoked meanwhile.
    await keys.refresh();
    const iat = Math.floor(clock() / 1000);
    const claims = {
      ...{ iss: issuer, aud: "customer", sub: `webhook:${groupUid}` },
      ...{ iat, nbf: iat, exp: iat + DELIVERY_TOKEN_LIFE_S, jti: ids.newId() },
      webhook: {
        digest: `sha256:${sha256(data).toString("hex")}`,
        attributes: digestAttributes(listAttributes(event)),
        subscription: uid,
      },
    };
    return sign(encodeJwt("JWT", claims, keys.getSigningKey()), rootOf(groupUid));
  }

  async function send(
    recipient: Recipient,
    take: () => Promise<CloudEvent>,
    { signal, maxWaitMs }: SendOptions = {},
  ): Promise<Attempt> {
    let event: CloudEvent | undefined;
    try {
      const { status, headers } = await fetch(recipient.sink, {
        method: "POST",
        async prepare() {
          event ??= await take();
          const body = Buffer.from(event.data);
          const authorization = `Bearer ${await createToken(event, recipient, body)}`;
          return { headers: { ...buildHeaders(event), authorization }, body };
        },
        maxWaitMs: maxWaitMs ?? "unlimited",
        maxBytes: MAX_RESPONSE_BYTES,
        dropsBody: true,
        organisation: rootOf(recipient.groupUid),
        unproven: recipient.isFailing ?? false,
        ...(signal && { signal }),
      });
      if (status >= 200 && status < 300) return { kind: "accepted", status, error: "" };
      onRejected?.(`${new URL(recipient.sink).origin}: status ${status}`);
      const retryAfterMs = parseRetryAfter(headers.get("retry-after"), clock());
      return { kind: status === 410 ? "gone" : "failed", status, error: `status ${status}`, retryAfterMs };
    } catch (error) {
      if (!isFetchError(error)) throw error;
      const { isBusy, kind } = error;
      if (isBusy) return { kind: "busy", status: 0, error: "too many requests to sinks are running" };
      return { kind: "failed", status: 0, error: reasons[kind ?? "unreachable"] };
    }
  }

  return {
    /**
     * Sends an event once there is a slot, which organisations share fairly.
     *
     * @param take takes the event that is sent, when the slot is free; called once at most
     * @throws what `take` throws, and an error of the keys
     */
    send,

    /** Sends an event that says nothing, so that a caller sees whether the sink accepts it. It is not repeated. */
    async sendTest(recipient: Recipient, actorUid: string): Promise<Attempt & { readonly durationMs: number }> {
      const startMs = performance.now();
      const event: CloudEvent = {
        ...{
          id: formatEventUuid(ids.newId()),
          type: TEST_TYPE,
          source: `${baseUrl}/events/v1/subscriptions`,
          subject: "",
        },
        ...{ time: new Date(clock()).toISOString(), group: recipient.groupUid, actor: actorUid },
        ...{ bodyType: "", identityProvider: "" },
        data: JSON.stringify({ actor: { subject: actorUid, act: {} }, body: {} }),
      };
      const attempt = await send(recipient, async () => event, { maxWaitMs: TEST_WAIT_MS });
      return { ...attempt, durationMs: Math.round(performance.now() - startMs) };
    },
  };
}

function isFetchError(error: unknown): error is GuardedFetchError {
  return error instanceof Error && error.name === "GuardedFetchError";
}

// They do not tell what is in the network of the service.
const reasons = {
  late: "no response in time",
  certificate: "the certificate is not valid",
  "client-certificate": "a client certificate is required, and none is sent",
  unreachable: "it could not be reached",
} as const;

/** The header fields of an event. */
export function buildHeaders(event: CloudEvent): Record<string, string> {
  return {
    "content-type": "application/json",
    "user-agent": `arbor/${VERSION}`,
    ...formatHeaders(listAttributes(event)),
  };
}

/** Reads a time to wait (RFC 9110, section 10.2.3): seconds, or a date. */
export function parseRetryAfter(value: string | null, nowMs: number): number | undefined {
  if (value === null) return undefined;
  const ms = /^\d{1,9}$/.test(value) ? Number(value) * 1_000 : Date.parse(value) - nowMs;
  return ms > 0 ? ms : undefined;
}
