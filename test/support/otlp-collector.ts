// A collector of traces: it takes what exporters send with OTLP over HTTP, in JSON, and refuses what is not OTLP.
import { createServer, type IncomingHttpHeaders, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { gunzipSync } from "node:zlib";

/** A span as it arrived. */
export interface CollectedSpan {
  readonly name: string;
  readonly traceId: string;
  readonly spanId: string;
  /** Empty for the first span of a trace. */
  readonly parentSpanId: string;
  /** By the numbers of OTLP: 1 internal, 2 server, 3 client. */
  readonly kind: number;
  readonly startNs: bigint;
  readonly endNs: bigint;
  readonly attributes: Readonly<Record<string, unknown>>;
  readonly events: readonly { readonly name: string; readonly attributes: Readonly<Record<string, unknown>> }[];
  /** The ids of the spans that it is linked with. */
  readonly links: readonly string[];
  /** Whether its status is an error. */
  readonly failed: boolean;
  /** Attributes of the service that sent it. */
  readonly resource: Readonly<Record<string, unknown>>;
}

/** A running collector. */
export interface OtlpCollector {
  readonly endpoint: string;
  readonly spans: readonly CollectedSpan[];
  /** The header fields of each request. */
  readonly requests: readonly IncomingHttpHeaders[];
  /** What it answers; 200 unless set. Nothing is collected from requests that it refuses. */
  status: number;
  /** Resolves to the spans of the first trace of which all these are there, by name; rejects after ten seconds. */
  waitForTrace(...names: readonly string[]): Promise<readonly CollectedSpan[]>;
  stop(): Promise<void>;
}

const WAIT_MS = 10_000;

/** Starts one on a free port of 127.0.0.1. */
export async function startOtlpCollector(): Promise<OtlpCollector> {
  const spans: CollectedSpan[] = [];
  const requests: IncomingHttpHeaders[] = [];
  const state = { status: 200 };
  const waiting = new Set<() => void>();
  const server = createServer(async (req, res) => {
    requests.push(req.headers);
    const body = await readBody(req);
    if (state.status !== 200) {
      res.writeHead(state.status).end();
      return;
    }
    try {
      if (req.method !== "POST" || req.url !== "/v1/traces") throw new TypeError(`${req.method} ${req.url}`);
      if (req.headers["content-type"] !== "application/json") throw new TypeError("the content type is not JSON");
      const plain = req.headers["content-encoding"] === "gzip" ? gunzipSync(body) : body;
      spans.push(...readSpans(JSON.parse(plain.toString())));
      res.writeHead(200, { "content-type": "application/json" }).end("{}");
    } catch (error) {
      res.writeHead(400).end(String(error));
    }
    for (const check of waiting) check();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    spans,
    requests,
    get status() {
      return state.status;
    },
    set status(status) {
      state.status = status;
    },
    waitForTrace: (...names) =>
      new Promise((resolve, reject) => {
        const check = () => {
          const found = findTrace(spans, names);
          if (found === undefined) return;
          clearTimeout(timer);
          waiting.delete(check);
          resolve(found);
        };
        const timer = setTimeout(() => {
          waiting.delete(check);
          reject(new Error(`no trace with ${names.join(", ")} among:\n${formatTraces(spans)}`));
        }, WAIT_MS);
        waiting.add(check);
        check();
      }),
    async stop() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

async function readBody(req: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of req as AsyncIterable<Buffer>) chunks.push(chunk);
  return Buffer.concat(chunks);
}

function findTrace(spans: readonly CollectedSpan[], names: readonly string[]): CollectedSpan[] | undefined {
  for (const id of new Set(spans.map(({ traceId }) => traceId))) {
    const trace = spans.filter(({ traceId }) => traceId === id);
    if (names.every((name) => trace.some((span) => span.name === name))) return trace;
  }
  return undefined;
}

interface OtlpValue {
  readonly stringValue?: string;
  readonly intValue?: number | string;
  readonly doubleValue?: number;
  readonly boolValue?: boolean;
  readonly arrayValue?: object;
}
type OtlpAttributes = readonly { readonly key: string; readonly value: OtlpValue }[];
interface OtlpSpan {
  readonly name: string;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly kind: number;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly attributes?: OtlpAttributes;
  readonly events?: readonly { readonly name: string; readonly attributes?: OtlpAttributes }[];
  readonly links?: readonly { readonly spanId: string }[];
  readonly status?: { readonly code?: number; readonly message?: string };
}
interface ExportRequest {
  readonly resourceSpans: readonly {
    readonly resource: { readonly attributes: OtlpAttributes };
    readonly scopeSpans: readonly { readonly spans: readonly OtlpSpan[] }[];
  }[];
}

function readSpans({ resourceSpans }: ExportRequest): CollectedSpan[] {
  return resourceSpans.flatMap(({ resource, scopeSpans }) =>
    scopeSpans.flatMap(({ spans }) => spans.map((span) => readSpan(span, readAttributes(resource.attributes)))),
  );
}

function readSpan(span: OtlpSpan, resource: CollectedSpan["resource"]): CollectedSpan {
  const { name, traceId, spanId, parentSpanId = "", kind, attributes, events = [], links = [], status } = span;
  if (!/^[0-9a-f]{32}$/.test(traceId) || !/^[0-9a-f]{16}$/.test(spanId)) throw new TypeError("an id is malformed");
  if (status?.message !== undefined && status.message !== "") throw new TypeError("the text of an error was exported");
  return {
    ...{ name, traceId, spanId, parentSpanId, kind, resource },
    startNs: BigInt(span.startTimeUnixNano),
    endNs: BigInt(span.endTimeUnixNano),
    attributes: readAttributes(attributes),
    events: events.map((event) => ({ name: event.name, attributes: readAttributes(event.attributes) })),
    links: links.map((link) => link.spanId),
    failed: status?.code === 2,
  };
}

function readAttributes(attributes: OtlpAttributes = []): Record<string, unknown> {
  return Object.fromEntries(
    attributes.map(({ key, value: { stringValue, intValue, doubleValue, boolValue } }) => {
      return [key, stringValue ?? (intValue === undefined ? (doubleValue ?? boolValue) : Number(intValue))];
    }),
  );
}

/** The spans as trees, one line for each: name, duration, attributes. */
export function formatTraces(spans: readonly CollectedSpan[]): string {
  const known = new Set(spans.map(({ spanId }) => spanId));
  const lines: string[] = [];
  const add = (span: CollectedSpan, depth: number) => {
    const { name, startNs, endNs, attributes, events, links, failed } = span;
    const us = Number(endNs - startNs) / 1000;
    const more = [
      ...Object.entries(attributes).map(([key, value]) => `${key}=${value}`),
      ...events.map((event) => `event:${event.name}`),
      ...links.map((link) => `link:${link}`),
    ];
    lines.push(`${"  ".repeat(depth)}${name} ${us.toFixed(0)} us${failed ? " ERROR" : ""} ${more.join(" ")}`.trimEnd());
    for (const child of childrenOf(span)) add(child, depth + 1);
  };
  const childrenOf = ({ spanId }: CollectedSpan) =>
    spans.filter(({ parentSpanId }) => parentSpanId === spanId).sort((a, b) => Number(a.startNs - b.startNs));
  for (const span of spans) if (!known.has(span.parentSpanId)) add(span, 0);
  return lines.join("\n");
}
