// grpc.health.v1, for load balancers and `grpc_health_probe`. The whole service has the name "", each RPC service its
// full name. All have the same status, which is NOT_SERVING once balancers should use another server.
import { setMaxListeners } from "node:events";
import { Health, HealthCheckResponse_ServingStatus as Status } from "#gen/health/v1/health_pb.js";
import { connectErrorFrom, notFound } from "../../kernel/errors.js";
import { defineService, type ExtraService } from "./extra-service.js";
import { createFeed } from "./status-feed.js";

const healthKind = { displayName: "service", type: "grpc.health.v1.Service" };

export interface HealthOptions {
  /** The full names of the services served. */
  readonly services: Iterable<string>;
  /** Rejects while the service cannot serve. */
  readonly ready: () => Promise<unknown>;
  /** Aborted when the service should get no new calls; it still serves those that come. */
  readonly leaving: AbortSignal;
  /** Aborted when the service begins to stop, which ends all watches. */
  readonly stopping: AbortSignal;
  /** ErrorInfo's domain. */
  readonly errorDomain: string;
}

/** Creates the health service, with `Check`, `Watch` and `List`. */
export function createHealth(options: HealthOptions): ExtraService {
  const { leaving, stopping } = options;
  const known = new Set(["", Health.typeName, ...options.services]);
  // Node warns of a leak from 10 listeners on; here they are intended.
  setMaxListeners(0, stopping);

  const current = async () => {
    if (leaving.aborted) return Status.NOT_SERVING;
    return options.ready().then(
      () => (leaving.aborted ? Status.NOT_SERVING : Status.SERVING),
      () => Status.NOT_SERVING,
    );
  };
  const feed = createFeed({ check: current, end: stopping, last: Status.NOT_SERVING });
  leaving.addEventListener("abort", feed.refresh, { once: true });

  return defineService(Health, {
    async check({ service }) {
      if (!known.has(service)) throw connectErrorFrom(notFound(healthKind, service), options.errorDomain);
      return { status: await current() };
    },

    // For an unknown service the stream says SERVICE_UNKNOWN and goes on (health.proto). It ends when the service
    // stops, which it would delay; clients then connect to another server.
    async *watch({ service }, context) {
      const follower = feed.follow(context.signal);
      try {
        if (!known.has(service)) {
          yield { status: Status.SERVICE_UNKNOWN };
          return await follower.waitForEnd();
        }
        let last: Status | undefined;
        for (;;) {
          last = await follower.next(last);
          if (last === undefined) return;
          yield { status: last };
        }
      } finally {
        follower.close();
      }
    },

    async list() {
      const status = await current();
      return { statuses: Object.fromEntries([...known].map((name) => [name, { status }])) };
    },
  });
}
