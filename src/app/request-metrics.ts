// Counts the requests of a service, from their records.
import { type RejectReason, rejectReasons } from "../kernel/reject-reason.js";
import type { MethodTable } from "../pipeline/method-table.js";
import { createRequestCounts } from "../telemetry/metrics/request-counts.js";
import { readValues, type Source } from "../telemetry/metrics/samples.js";
import { codeOfStatus, type RequestObserver, type RequestProtocol } from "../telemetry/request-record.js";
import type { HttpBinding } from "../transport/http/http-binding.js";
import type { ExtraService } from "../transport/rpc/connect-handlers.js";

const RPC: readonly RequestProtocol[] = ["grpc", "grpc-web", "connect"];
const REST: readonly RequestProtocol[] = ["rest", ...RPC];
const HTTP: readonly RequestProtocol[] = ["http"];
const PROTOCOLS = [...REST, ...HTTP];

/** The methods and routes of a service. */
export interface ServedMethods {
  /** All values of `method` in records: `package.Service/Method` of RPCs, and names of routes. */
  readonly names: readonly string[];
  /** Those that are served over REST. */
  readonly rest: ReadonlySet<string>;
  /** Those that stream. */
  readonly streams: ReadonlySet<string>;
}

/** Lists the methods and routes of a service. */
export function listServed(
  names: readonly string[],
  {
    methods,
    extraServices,
    routes,
  }: {
    readonly methods: MethodTable;
    readonly extraServices: readonly ExtraService[];
    readonly routes: readonly HttpBinding[];
  },
): ServedMethods {
  const extra = extraServices.flatMap(({ desc }) => desc.methods);
  const streams = [
    ...[...methods.values()].filter(({ kind }) => kind !== "unary").map(({ desc }) => desc),
    ...extra.filter(({ methodKind }) => methodKind !== "unary"),
  ];
  return {
    names,
    rest: new Set(routes.map(({ entry }) => entry.path.slice(1))),
    streams: new Set(streams.map(({ parent, name }) => `${parent.typeName}/${name}`)),
  };
}

/** Counts requests; see {@link createRequestMetrics}. */
export interface RequestMetrics {
  /** The names of all methods and routes that have counts of their own. */
  readonly names: readonly string[];
  readonly observe: RequestObserver;
  readonly sources: readonly Source[];
}

/**
 * Creates the counts, which are 0.
 *
 * @param rejectedEarly rejections that the transport counts, because not all of them have a record; for each reason the
 * larger count is used
 */
export function createRequestMetrics(
  { names, rest, streams }: ServedMethods,
  rejectedEarly: Readonly<Partial<Record<RejectReason, number>>> = {},
): RequestMetrics {
  const methods = names.map((name) => {
    const protocols = name.includes("/") ? (rest.has(name) ? REST : RPC) : HTTP;
    return { name, protocols, isStream: streams.has(name) };
  });
  const counts = createRequestCounts(methods, PROTOCOLS);
  const rejected = Object.fromEntries(rejectReasons.map((reason) => [reason, 0])) as Record<RejectReason, number>;
  const readRejected = () =>
    Object.fromEntries(rejectReasons.map((reason) => [reason, Math.max(rejected[reason], rejectedEarly[reason] ?? 0)]));
  return {
    names,
    observe(record) {
      const { protocol, method, code, status, reason, isCanceled, isEarly, durationMs } = record;
      const seconds = isEarly ? undefined : durationMs / 1000;
      counts.count(protocol, method, code ?? (isCanceled ? CANCELLED : codeOfStatus(status ?? 500)), seconds);
      if (reason !== undefined) rejected[reason]++;
    },
    sources: [...counts.sources, readValues("arbor_requests_rejected_total", "reason", readRejected)],
  };
}

const CANCELLED = 1;
