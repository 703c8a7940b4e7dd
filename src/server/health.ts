// grpc.health.v1: what load balancers and `grpc_health_probe` ask. The service
// as a whole is called "", each RPC service by its full name; all are ready or
// not together, and none is once the service begins to stop.
import { setMaxListeners } from "node:events";
import type { HandlerContext } from "@connectrpc/connect";
import { Health, HealthCheckResponse_ServingStatus as Status } from "#gen/health/v1/health_pb.js";
import { connectErrorFrom, notFound } from "../kernel/errors.js";
import { peerAddress, type TrustedProxies } from "../transport/http/http-message.js";
import { defaultLimits, type Limits } from "../transport/http/limits.js";
import { createFeed } from "../transport/rpc/status-feed.js";
import { createStreamShares, type StreamPeer } from "../transport/rpc/stream-shares.js";
import { type ExtraService, extraService } from "./connect.js";
import { connectionKey } from "./connect-request.js";

const healthKind = { noun: "service", type: "grpc.health.v1.Service" };

/** What health is judged by. */
export interface HealthOptions {
  /** The full names of the services served. */
  readonly services: Iterable<string>;
  /** Rejects while the service cannot serve. */
  readonly ready: () => Promise<void>;
  /** Aborted when the service begins to stop: it still answers calls in flight, and wants no new ones. */
  readonly stopping: AbortSignal;
  /** ErrorInfo's domain. */
  readonly errorDomain: string;
  /** Whose `x-forwarded-for` counts; nobody's unless given. */
  readonly proxies?: TrustedProxies | undefined;
  /** Whether connections are all of a proxy's: then nothing is counted by an address that may be its own. */
  readonly behindProxy?: boolean | undefined;
  readonly limits?: Limits | undefined;
}

/** The health service, with `Check`, `Watch` and `List`. */
export function createHealth(options: HealthOptions): ExtraService {
  const { stopping, limits = defaultLimits } = options;
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
  const shares = createStreamShares("watchers", {
    total: limits.healthWatchers,
    perConnection: limits.healthWatchersPerConnection,
    perAddress: limits.healthWatchersPerAddress,
  });

  // Many peers share the connections of a trusted proxy, and the address of a proxy nobody trusts.
  function peerOf({ values, requestHeader }: HandlerContext): StreamPeer {
    const { connection, socketAddress } = values.get(connectionKey);
    const forwarded = requestHeader.get("x-forwarded-for");
    const headers = forwarded === null ? {} : { "x-forwarded-for": forwarded };
    const address = peerAddress(socketAddress, headers, options.proxies);
    if (address !== socketAddress) return { connection: undefined, address };
    return { connection, address: options.behindProxy ? undefined : address };
  }

  function take(context: HandlerContext): () => void {
    try {
      return shares.take(peerOf(context));
    } catch (error) {
      throw connectErrorFrom(error, options.errorDomain);
    }
  }

  return extraService(Health, {
    async check({ service }) {
      if (!known.has(service)) throw connectErrorFrom(notFound(healthKind, service), options.errorDomain);
      return { status: await current() };
    },

    // A stream says UNKNOWN of services it does not know, and goes on (health.proto). It ends when the
    // service stops, which it would hold up; watchers then look for another that serves.
    async *watch({ service }, context) {
      const release = take(context);
      const follower = feed.follow(context.signal);
      try {
        if (!known.has(service)) {
          yield { status: Status.SERVICE_UNKNOWN };
          return await follower.ended();
        }
        let last: Status | undefined;
        for (;;) {
          last = await follower.next(last);
          if (last === undefined) return;
          yield { status: last };
        }
      } finally {
        follower.close();
        release();
      }
    },

    async list() {
      const status = await current();
      return { statuses: Object.fromEntries([...known].map((name) => [name, { status }])) };
    },
  });
}
