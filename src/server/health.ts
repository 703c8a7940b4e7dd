// grpc.health.v1: what load balancers and `grpc_health_probe` ask. The service
// as a whole is called "", each RPC service by its full name; all are ready or
// not together, and none is once the service begins to stop.
import { setMaxListeners } from "node:events";
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
  /** Aborted when the service begins to stop: it still answers calls in flight, and wants no new ones. */
  readonly stopping: AbortSignal;
  /** ErrorInfo's domain. */
  readonly errorDomain: string;
}

/** The health service, with `Check`, `Watch` and `List`. */
export function createHealth(options: HealthOptions): ExtraService {
  const { stopping } = options;
  const known = new Set(["", Health.typeName, ...options.services]);
  // Each watcher is a listener; however many there are, none is a leak.
  setMaxListeners(0, stopping);

  const current = async () => {
    if (stopping.aborted) return Status.NOT_SERVING;
    return options.ready().then(
      () => Status.SERVING,
      () => Status.NOT_SERVING,
    );
  };

  return extraService(Health, {
    async check({ service }) {
      if (!known.has(service)) throw connectErrorFrom(notFound(healthKind, service), options.errorDomain);
      return { status: await current() };
    },

    // A stream says UNKNOWN of services it does not know, and goes on (health.proto). It ends when the
    // service stops, which it would hold up; watchers then look for another that serves.
    async *watch({ service }, { signal }) {
      let last: Status | undefined;
      while (!signal.aborted) {
        const ends = stopping.aborted;
        const status = known.has(service) ? await current() : Status.SERVICE_UNKNOWN;
        if (status !== last) yield { status };
        last = status;
        if (ends) return;
        await pause(WATCH_MS, [signal, stopping]);
      }
    },

    async list() {
      const status = await current();
      return { statuses: Object.fromEntries([...known].map((name) => [name, { status }])) };
    },
  });
}

function pause(ms: number, until: readonly AbortSignal[]): Promise<void> {
  if (until.some(({ aborted }) => aborted)) return Promise.resolve();
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      for (const signal of until) signal.removeEventListener("abort", done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    for (const signal of until) signal.addEventListener("abort", done);
  });
}
