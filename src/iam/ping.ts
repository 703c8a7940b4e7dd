// PingService answers any caller; version 1 is a view of it.
import { PingService as PingServiceV1 } from "#gen/chainguard/platform/ping/ping_pb.js";
import { PingService } from "#gen/chainguard/platform/ping/v2beta1/ping_pb.js";
import { type ServedService, serve } from "../pipeline/method-table.js";
import { operationsOf } from "../pipeline/operations.js";

/** Creates PingService. */
export function pingV2beta1() {
  return serve(PingService, { ping: () => ({ response: "pong" }) });
}

/** Creates PingService of version 1. */
export function pingV1(served: ServedService<typeof PingService>) {
  const v2 = operationsOf(served);
  return serve(PingServiceV1, {
    ping: async (_, call) => ({ response: (await v2.ping({}, call)).response }),
  });
}
