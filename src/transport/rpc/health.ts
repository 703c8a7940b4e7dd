// grpc.health.v1: what load balancers and `grpc_health_probe` ask. The service
// as a whole is called "", each RPC service by its full name; all are ready or
// not together, and none is once the service begins to stop.
import { setMaxListeners } from "node:events";
import { Health, HealthCheckResponse_ServingStatus as Status } from "#gen/health/v1/health_pb.js";
import { connectErrorFrom, notFound } from "../../kernel/errors.js";
import { type ExtraService, extraService } from "./connect-handlers.js";
import { createFeed } from "./status-feed.js";

const healthKind = { displayName: "service", type: "grpc.health.v1.Service" };

/** What health is judged by. */
export interface HealthOptions {
  /** The full names of the services served. */
  readonly services: Iterable<string>;
  /** Rejects while the service cannot serve. */
  readonly ready: () => Promise<unknown>;
  /** Aborted when the service begins to stop: it still answers calls in flight, and wants no new ones. */
  readonly stopping: AbortSignal;
  /** ErrorInfo's domain. */
  readonly errorDomain: string;
}

/** The health service, with `Check`, `Watch` and `List`. */
export function createHealth(options: HealthOptions): ExtraService {
  const { stopping } = options;
  const known = new Set(["", Health.typeName, ...options.services]);
  // One listener for all of health and some of others; none is a leak.
  setMaxListeners(0, stopping);

  const current = async () => {
    if (stopping.aborted) return Status.NOT_SERVING;
    return options.ready().then(
      () => Status.SERVING,
      () => Status.NOT_SERVING,
    );
  };
  const feed = createFeed({ check: current, end: stopping, last: Status.NOT_SERVING });

  return extraService(Health, {
    async check({ service }) {
      if (!known.has(service)) throw connectErrorFrom(notFound(healthKind, service), options.errorDomain);
      return { status: await current() };
    },

    // A stream says UNKNOWN of services it does not know, and goes on (health.proto). It ends when the
    // service stops, which it would hold up; watchers then look for another that serves.
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
