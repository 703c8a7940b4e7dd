// Spans of OpenTelemetry. Each has an explicit parent: async context tracking would slow down all promises of the
// process. Only `trace-exporter.ts` loads this module.
import {
  type Context,
  createTraceState,
  type HrTime,
  ROOT_CONTEXT,
  type Span,
  type SpanContext,
  SpanKind,
  SpanStatusCode,
  TraceFlags,
  type Tracer,
  trace,
} from "@opentelemetry/api";
import { parseTraceparent, type StartRequest, type TraceAttributes, type TraceSpan } from "../kernel/trace.js";
import { codeNames } from "./request-record.js";

/** How many children of one span are recorded: an unpaginated list has a transaction for each of its chunks. */
const MAX_CHILDREN = 100;

/** The codes that are errors of a server, by OpenTelemetry's conventions for gRPC. */
const SERVER_FAULTS: ReadonlySet<unknown> = new Set([2, 4, 12, 13, 14, 15]);

/** The header fields of the trace context (W3C) in a request. */
export interface TraceFields {
  readonly traceparent?: string | undefined;
  readonly tracestate?: string | undefined;
}

/** Records what requests do. */
export interface Tracing {
  /**
   * Begins the span of a request. It is part of the caller's trace if `fields` name one.
   *
   * @param name one of a small set of names; never from a request
   * @param startMs when the request began, by `performance.now()`
   * @param describe called when the trace is sampled
   */
  startServer(name: string, fields: TraceFields, startMs: number, describe: () => TraceAttributes): TraceSpan;

  /** Begins the span of a request to another service that belongs to no call. */
  readonly startRequest: StartRequest;

  /** Sends the recorded spans, for at most this many milliseconds. */
  stop(maxMs: number): Promise<void>;
}

/** Creates spans with a tracer. `propagate` says whether callers and other services share traces with this one. */
export function createSpans(tracer: Tracer, propagate: boolean): Omit<Tracing, "stop"> {
  function start(name: string, kind: SpanKind, parent: Context, clock: TraceClock, startMs: number): TraceSpan {
    const span = tracer.startSpan(name, { kind, startTime: clock.at(startMs) }, parent);
    return span.isRecording()
      ? new RecordedSpan(tracer, span, clock, propagate)
      : new UnsampledSpan(span.spanContext(), propagate);
  }

  return {
    startServer(name, fields, startMs, describe) {
      const parent = propagate ? parentOf(fields) : ROOT_CONTEXT;
      const span = start(name, SpanKind.SERVER, parent, new TraceClock(), startMs);
      if (span.isRecording) span.setAttributes(describe());
      return span;
    },
    startRequest(name, attributes) {
      const span = start(name, SpanKind.CLIENT, ROOT_CONTEXT, new TraceClock(), performance.now());
      if (attributes !== undefined) span.setAttributes(attributes);
      return span;
    },
  };
}

function parentOf({ traceparent, tracestate }: TraceFields): Context {
  const parent = parseTraceparent(traceparent);
  if (parent === undefined) return ROOT_CONTEXT;
  const { traceId, spanId, isSampled } = parent;
  return trace.setSpanContext(ROOT_CONTEXT, {
    traceId,
    spanId,
    traceFlags: isSampled ? TraceFlags.SAMPLED : TraceFlags.NONE,
    isRemote: true,
    ...(tracestate !== undefined && { traceState: createTraceState(tracestate) }),
  });
}

/**
 * The times of one trace. The wall clock, which may be set, is read once; all differences are those of the monotonic
 * clock.
 */
class TraceClock {
  readonly #offsetMs = Date.now() - performance.now();

  at(ms: number): HrTime {
    const epochMs = ms + this.#offsetMs;
    const seconds = Math.floor(epochMs / 1000);
    return [seconds, Math.floor((epochMs - seconds * 1000) * 1e6)];
  }

  now(): HrTime {
    return this.at(performance.now());
  }
}

class RecordedSpan implements TraceSpan {
  readonly isRecording = true;
  readonly #tracer: Tracer;
  readonly #span: Span;
  readonly #clock: TraceClock;
  readonly #propagate: boolean;
  #context: Context | undefined;
  #children = 0;
  #hasError = false;

  constructor(tracer: Tracer, span: Span, clock: TraceClock, propagate: boolean) {
    this.#tracer = tracer;
    this.#span = span;
    this.#clock = clock;
    this.#propagate = propagate;
  }

  get traceId(): string {
    return this.#span.spanContext().traceId;
  }

  startChild(name: string, attributes?: TraceAttributes, startMs = performance.now()): TraceSpan {
    return this.#start(name, SpanKind.INTERNAL, attributes, startMs);
  }

  startRequest(name: string, attributes?: TraceAttributes): TraceSpan {
    return this.#start(name, SpanKind.CLIENT, attributes, performance.now());
  }

  #start(name: string, kind: SpanKind, attributes: TraceAttributes | undefined, startMs: number): TraceSpan {
    if (++this.#children > MAX_CHILDREN) return new UnsampledSpan(this.#span.spanContext(), this.#propagate);
    this.#context ??= trace.setSpan(ROOT_CONTEXT, this.#span);
    const startTime = this.#clock.at(startMs);
    const options = attributes === undefined ? { kind, startTime } : { kind, startTime, attributes };
    const span = this.#tracer.startSpan(name, options, this.#context);
    return new RecordedSpan(this.#tracer, span, this.#clock, this.#propagate);
  }

  addEvent(name: string, attributes?: TraceAttributes): void {
    this.#span.addEvent(name, attributes, this.#clock.now());
  }

  addLink(other: TraceSpan): void {
    if (other instanceof RecordedSpan) this.#span.addLink({ context: other.#span.spanContext() });
  }

  setAttributes(attributes: TraceAttributes): void {
    this.#span.setAttributes(attributes);
  }

  headers(): Readonly<Record<string, string>> {
    return this.#propagate ? fieldsOf(this.#span.spanContext()) : {};
  }

  end(): void {
    if (!this.#span.isRecording()) return;
    if (this.#children > MAX_CHILDREN) {
      this.#span.setAttribute("arbor.dropped_children", this.#children - MAX_CHILDREN);
    }
    this.#span.end(this.#clock.now());
  }

  noteError(error: unknown): void {
    if (this.#hasError || !this.#span.isRecording()) return;
    this.#hasError = true;
    this.#span.setAttribute("error.type", errorTypeOf(error));
    if (isServerFault(error)) this.#span.setStatus({ code: SpanStatusCode.ERROR });
  }

  fail(error: unknown): void {
    this.noteError(error);
    this.end();
  }
}

/** A span of a trace that is not sampled, which other services are told by its context. */
class UnsampledSpan implements TraceSpan {
  readonly isRecording = false;
  readonly #context: SpanContext;
  readonly #propagate: boolean;

  constructor(context: SpanContext, propagate: boolean) {
    this.#context = context;
    this.#propagate = propagate;
  }

  get traceId(): string {
    return this.#context.traceId;
  }

  startChild(): TraceSpan {
    return this;
  }

  startRequest(): TraceSpan {
    return this;
  }

  headers(): Readonly<Record<string, string>> {
    return this.#propagate ? fieldsOf(this.#context) : {};
  }

  addEvent(): void {}
  addLink(): void {}
  setAttributes(): void {}
  end(): void {}
  noteError(): void {}
  fail(): void {}
}

function fieldsOf({ traceId, spanId, traceFlags, traceState }: SpanContext): Record<string, string> {
  const flags = (traceFlags & TraceFlags.SAMPLED).toString(16).padStart(2, "0");
  const fields: Record<string, string> = { traceparent: `00-${traceId}-${spanId}-${flags}` };
  const state = traceState?.serialize();
  if (state) fields.tracestate = state;
  return fields;
}

// The `error.type` of an error: its gRPC code, the code of a socket or database error, or its class; never its text,
// which may contain parts of a request.
function errorTypeOf(error: unknown): string {
  const { code, name } = (error ?? {}) as { readonly code?: unknown; readonly name?: unknown };
  const type = typeof code === "number" ? codeNames[code] : (code ?? name);
  return typeof type === "string" && /^\w{1,40}$/.test(type) ? type : "_OTHER";
}

// Whether an error is a failure of the server. Others, such as NOT_FOUND, are responses to the caller.
function isServerFault(error: unknown): boolean {
  const { code } = (error ?? {}) as { readonly code?: unknown };
  return typeof code !== "number" || SERVER_FAULTS.has(code);
}
