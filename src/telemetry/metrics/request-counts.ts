// Counts requests by method, protocol and code. The counts are in arrays of fixed size, so that counting a request is
// an addition and the number of series is limited, whatever callers send.
import { codeNames } from "../request-record.js";
import { MAX_REQUEST_SERIES } from "./families.js";
import type { Sample, Source } from "./samples.js";

/** A method or route, and the protocols that serve it. */
export interface CountedMethod {
  readonly name: string;
  readonly protocols: readonly string[];
  /** Whether its calls last as long as their callers want, so that durations are not measured. */
  readonly isStream?: boolean;
}

/** The code of all further responses of a method when there are no more series. */
const OTHER = codeNames.length;
const COLUMNS = codeNames.length + 1;

/**
 * Codes that have a series from the first request of a method on, because alerts read them: OK, INTERNAL, UNAVAILABLE.
 * The rate of a series that begins with its first error would not include that error.
 */
const RESERVED: ReadonlySet<number> = new Set([0, 13, 14]);

/** Upper bounds of durations, in seconds. Each costs a series per method and protocol. */
const BOUNDS = [0.005, 0.025, 0.1, 0.5, 2.5];
const BUCKETS = BOUNDS.length + 1;

/** The series that each method has per protocol in any case: buckets, sum, count and reserved codes. */
const ROW_SERIES = BUCKETS + 2 + RESERVED.size + 1;

/** The label of requests without a method or route. */
const UNKNOWN_METHOD = "unknown";
/** The label of methods without series of their own, because there are too many. */
const OTHER_METHOD = "other";

interface Row {
  readonly method: string;
  readonly protocol: string;
  readonly isStream: boolean;
}

/** Counts of requests; see {@link createRequestCounts}. */
export type RequestCounts = ReturnType<typeof createRequestCounts>;

/**
 * Creates the counts, which are 0.
 *
 * @param methods all methods and routes that are served; if there are too many, the last ones have no series of their
 * own
 * @param protocols all protocols
 * @param maxSeries the most series that these counts have, at least some dozens
 */
export function createRequestCounts(
  methods: readonly CountedMethod[],
  protocols: readonly string[],
  maxSeries: number = MAX_REQUEST_SERIES,
) {
  const { rows, rowOf } = buildRows(methods, protocols, Math.floor(maxSeries / ROW_SERIES));
  const counts = new Float64Array(rows.length * COLUMNS);
  const buckets = new Float64Array(rows.length * BUCKETS);
  const sums = new Float64Array(rows.length);
  let unused = maxSeries - rows.length * ROW_SERIES;

  // The first response with a code takes one of the remaining series. Even if callers take all of them, failures of the
  // service are counted, because their codes are reserved.
  function takeCell(row: number, code: number): number {
    const cell = row * COLUMNS + code;
    if (RESERVED.has(code)) return cell;
    if (unused === 0) return row * COLUMNS + OTHER;
    unused--;
    return cell;
  }

  function* requests(): Generator<Sample> {
    for (const [row, { method, protocol }] of rows.entries()) {
      const of = counts.subarray(row * COLUMNS, (row + 1) * COLUMNS);
      if (of.every((count) => count === 0)) continue;
      for (const [column, value] of of.entries()) {
        if (value === 0 && !RESERVED.has(column)) continue;
        yield { value, labels: { method, protocol, code: codeNames[column] ?? "OTHER" } };
      }
    }
  }

  function* durations(): Generator<Sample> {
    const name = "arbor_request_duration_seconds";
    for (const [row, { method, protocol }] of rows.entries()) {
      const of = buckets.subarray(row * BUCKETS, (row + 1) * BUCKETS);
      if (of.every((count) => count === 0)) continue;
      let value = 0;
      for (const [bucket, count] of of.entries()) {
        value += count;
        yield {
          value,
          labels: { method, protocol, le: String(BOUNDS[bucket] ?? "+Inf") },
          metricName: `${name}_bucket`,
        };
      }
      yield { value: sums[row] ?? 0, labels: { method, protocol }, metricName: `${name}_sum` };
      yield { value, labels: { method, protocol }, metricName: `${name}_count` };
    }
  }

  const sources: readonly Source[] = [
    { name: "arbor_requests_total", collect: requests },
    { name: "arbor_request_duration_seconds", collect: durations },
  ];

  return {
    sources,
    /**
     * Counts a request that has its response.
     *
     * @param method the name of its method or route; undefined where it matched none
     * @param code the code of the response, by its number in gRPC
     * @param seconds from the headers of the request to the end of the response; undefined if it is not to be measured
     */
    count(protocol: string, method: string | undefined, code: number, seconds: number | undefined): void {
      const row = rowOf(protocol, method ?? UNKNOWN_METHOD);
      let cell = row * COLUMNS + (code >= 0 && code < OTHER ? code : 2);
      if (counts[cell] === 0) cell = takeCell(row, cell - row * COLUMNS);
      counts[cell] = (counts[cell] as number) + 1;
      if (seconds === undefined || (rows[row] as Row).isStream) return;
      let bucket = row * BUCKETS;
      for (const bound of BOUNDS) {
        if (seconds <= bound) break;
        bucket++;
      }
      buckets[bucket] = (buckets[bucket] as number) + 1;
      sums[row] = (sums[row] as number) + seconds;
    },
  };
}

// The rows of unknown and of other methods come first; methods without a row of their own are counted there.
function buildRows(methods: readonly CountedMethod[], protocols: readonly string[], maxRows: number) {
  const rows: Row[] = [];
  const byProtocol = new Map<string, Map<string, number>>(protocols.map((protocol) => [protocol, new Map()]));
  const add = (method: string, protocol: string, isStream: boolean) => {
    if (rows.length >= maxRows || byProtocol.get(protocol)?.has(method)) return;
    byProtocol.get(protocol)?.set(method, rows.push({ method, protocol, isStream }) - 1);
  };
  for (const protocol of protocols) for (const name of [UNKNOWN_METHOD, OTHER_METHOD]) add(name, protocol, false);
  for (const { name, protocols: served, isStream = false } of methods) {
    for (const protocol of served) add(name, protocol, isStream);
  }
  const rowOf = (protocol: string, method: string): number => {
    const known = byProtocol.get(protocol);
    return known?.get(method) ?? known?.get(OTHER_METHOD) ?? 0;
  };
  return { rows, rowOf };
}
