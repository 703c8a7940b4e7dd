import { PingService } from "#gen/chainguard/platform/ping/v2beta1/ping_pb.js";
import { serve } from "../pipeline/method-table.js";

/** PingService: answers anybody. */
export function pingV2beta1() {
  return serve(PingService, { ping: () => ({ response: "pong" }) });
}
