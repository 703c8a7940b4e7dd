// grpc.health.v1: what load balancers and `grpc_health_probe` ask. The service
// as a whole is called "", each RPC service by its full name; all are ready or
// not together.
import { Health, HealthCheckResponse_ServingStatus as Status } from "#gen/health/v1/health_pb.js";
import { connectErrorFrom, notFound } from "../kernel/errors.js";
import { type ExtraService, extraService } from "./connect.js";

/** How often a watcher's answer is looked at again, in milliseconds. */
const WATCH_MS = 1_000;
const healthKind = { noun: "service", type: "grpc.health.v1.Service" };

/** What health is judged by. */
export interface HealthOptions {
  /** The full names of the services served. */
  readonly services: Iterable<string>;
  /** Rejects while the service cannot serve. */
  readonly ready: () => Promise<void>;
  /** ErrorInfo's domain. */
  readonly errorDomain: string;
}

/** The health service, with `Check`, `Watch` and `List`. */
export function createHealth(options: HealthOptions): ExtraService {
  const known = new Set(["", Health.typeName, ...options.services]);

  const current = () =>
    options.ready().then(
      () => Status.SERVING,
      () => Status.NOT_SERVING,
    );

  return extraService(Health, {
    async check({ service }) {
      if (!known.has(service)) throw connectErrorFrom(notFound(healthKind, service), options.errorDomain);
      return { status: await current() };
    },

    // A stream never ends by itself and says UNKNOWN of services it does not know (health.proto).
    async *watch({ service }, { signal }) {
      let last: Status | undefined;
      while (!signal.aborted) {
        const status = known.has(service) ? await current() : Status.SERVICE_UNKNOWN;
        if (status !== last) yield { status };
        last = status;
        await pause(WATCH_MS, signal);
      }
    },

    async list() {
      const status = await current();
      return { statuses: Object.fromEntries([...known].map((name) => [name, { status }])) };
    },
  });
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      signal.removeEventListener("abort", done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    signal.addEventListener("abort", done);
  });
}
