// The delivery of events to the sinks of subscriptions: requests of their own, apart from those of logins and exchanges.
import { readFileSync } from "node:fs";
import { BlockList, isIP } from "node:net";
import type { Origin } from "../../config/origin.js";
import type { Settings } from "../../config/settings.js";
import { createSender } from "../../events/delivery/sender.js";
import { createSigner } from "../../issuer/signer.js";
import { createGuardedFetch, type Resolve } from "../../outbound/guarded-fetch.js";
import type { SlotLimits } from "../../outbound/slots.js";
import type { Tracing } from "../../telemetry/spans.js";
import type { AreaDeps } from "./area.js";
import type { StoreArea } from "./store.js";

export interface EventSenderDeps extends Pick<AreaDeps, "settings" | "ids" | "onProblem"> {
  readonly origin: Pick<Origin, "issuer" | "baseUrl">;
  readonly storage: Pick<StoreArea, "keys" | "clock">;
  readonly tracing: Tracing | undefined;
  /** Replaced in tests. */
  readonly resolve?: Resolve;
}

/**
 * Requests to sinks at once: of the process, of an organisation, to the origin of a sink, and of an organisation to it.
 * Subscriptions that have something to send wait, each once.
 */
const SLOTS: SlotLimits = {
  running: 256,
  runningPerAccount: 32,
  runningPerTarget: 64,
  runningPerAccountAndTarget: 8,
  leavesFree: true,
  waiting: 100_000,
  waitingPerAccount: 2_000,
};
/** The same for sinks that failed last, which may hang until their deadline. */
const FAILING_SLOTS: SlotLimits = { ...SLOTS, running: 64, runningPerAccount: 8, runningPerTarget: 16 };
const MAX_KEPT_CONNECTIONS = 256;
/** How long a sink may take to answer, in milliseconds, from the beginning of the request. */
const DEADLINE_MS = 10_000;
/** Signatures take threads that logins need as well, so events have one of them. */
const SIGNATURES: SlotLimits = {
  running: 1,
  runningPerAccount: 1,
  runningPerTarget: Number.POSITIVE_INFINITY,
  waiting: 20_000,
  waitingPerAccount: 10_000,
};
/** How often a failure of a sink is logged, in milliseconds, and of how many sinks that is known. */
const LOG_MS = 600_000;
const MAX_LOGGED = 1_000;

/** Creates what sends events. */
export function createEventSender({ settings, ids, onProblem, origin, storage, tracing, resolve }: EventSenderDeps) {
  const { keys, clock } = storage;
  const reportFailure = throttle((reason) => onProblem(`a sink did not accept an event: ${reason}`));
  return createSender({
    ...{ keys, ids, clock, issuer: origin.issuer, baseUrl: origin.baseUrl },
    sign: createSigner(undefined, SIGNATURES),
    onRejected: reportFailure,
    fetch: createGuardedFetch({
      ...readTrustedSinks(settings),
      ...(resolve && { resolve }),
      proxy: settings.outboundProxy,
      slots: SLOTS,
      unprovenSlots: FAILING_SLOTS,
      maxKept: MAX_KEPT_CONNECTIONS,
      deadlineMs: DEADLINE_MS,
      onFailure: reportFailure,
      startRequest: tracing?.startRequest,
    }),
  });
}

function readTrustedSinks({ trustedSinks, sinkCa }: Pick<Settings, "trustedSinks" | "sinkCa">) {
  const networks = trustedSinks.filter((one) => !one.includes("://"));
  const trustedNetworks = new BlockList();
  for (const network of networks) {
    const [address = "", prefix] = network.split("/");
    const family = isIP(address) === 6 ? "ipv6" : "ipv4";
    trustedNetworks.addSubnet(address, Number(prefix ?? (family === "ipv6" ? 128 : 32)), family);
  }
  return {
    trustedOrigins: trustedSinks.filter((one) => one.includes("://")),
    ...(networks.length > 0 && { trustedNetworks }),
    ...(sinkCa !== undefined && { ca: readFileSync(sinkCa, "utf8") }),
  };
}

// A sink that is away fails for a day.
function throttle(log: (reason: string) => void): (reason: string) => void {
  const logged = new Map<string, number>();
  return (reason) => {
    const nowMs = performance.now();
    if (nowMs - (logged.get(reason) ?? Number.NEGATIVE_INFINITY) < LOG_MS) return;
    if (logged.size >= MAX_LOGGED) logged.clear();
    logged.set(reason, nowMs);
    log(reason);
  };
}
