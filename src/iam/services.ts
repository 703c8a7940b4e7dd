// The services of iam that manage no kind of resource, and PingService, which any caller may call.
import { PingService as PingServiceV1 } from "#gen/chainguard/platform/ping/ping_pb.js";
import { PingService } from "#gen/chainguard/platform/ping/v2beta1/ping_pb.js";
import { type ServedService, serve } from "../pipeline/method-table.js";
import { createOperations } from "../pipeline/operations.js";
import type { ResourceDeps } from "../pipeline/resource/read.js";
import { bindingsV1 } from "./bindings/bindings-v1.js";
import { tokensV1 } from "./identities/tokens-v1.js";
import { temporaryBindingsV1 } from "./role-bindings/temporary-bindings-v1.js";
import { type ScimServiceDeps, scimV1 } from "./scim-users/status-v1.js";

export type IamServicesDeps = Pick<ResourceDeps, "listResources" | "ids"> & ScimServiceDeps;

export function createIamServices(deps: IamServicesDeps): ServedService[] {
  const ping = pingV2beta1();
  return [ping, pingV1(ping), bindingsV1(deps), temporaryBindingsV1(deps), tokensV1(), scimV1(deps)];
}

/** Creates PingService. */
function pingV2beta1() {
  return serve(PingService, { ping: () => ({ response: "pong" }) });
}

/** Creates PingService of version 1. */
function pingV1(served: ServedService<typeof PingService>) {
  const v2 = createOperations(served);
  return serve(PingServiceV1, {
    ping: async (_, call) => ({ response: (await v2.ping({}, call)).response }),
  });
}
