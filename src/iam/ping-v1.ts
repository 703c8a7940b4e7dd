// Ping, version 1: a view of PingService of version 2beta1.
import { PingService } from "#gen/chainguard/platform/ping/ping_pb.js";
import type { PingService as PingServiceV2 } from "#gen/chainguard/platform/ping/v2beta1/ping_pb.js";
import { type ServedService, serve } from "../pipeline/method-table.js";
import { operationsOf } from "../pipeline/operations.js";

/** PingService of version 1, ready to be served. */
export function pingV1(served: ServedService<typeof PingServiceV2>) {
  const v2 = operationsOf(served);
  return serve(PingService, {
    ping: async (_, call) => ({ response: (await v2.ping({}, call)).response }),
  });
}
