// What the service knows of traces without a library: the operations of a call that are recorded, and the header fields
// of W3C Trace Context. `telemetry/spans.ts` implements the operations with OpenTelemetry.

/** Values that describe an operation, by the names of OpenTelemetry's semantic conventions. */
export type TraceAttributes = Readonly<Record<string, string | number | boolean>>;

/**
 * An operation within a trace: a span. It is `undefined` where traces are off, so that they cost nothing there. Where
 * the sampler left the trace out, the span records nothing, and requests to other services still carry it.
 */
export interface TraceSpan {
  readonly traceId: string;
  /** Whether anything is recorded. Methods may be called in either case. */
  readonly isRecording: boolean;
  /**
   * Begins an operation that is part of this one.
   *
   * @param name one of a small set of names; never from a request
   * @param startMs when it began, by `performance.now()`; now unless given
   */
  startChild(name: string, attributes?: TraceAttributes, startMs?: number): TraceSpan;
  /** Begins a request to another service. */
  startRequest(name: string, attributes?: TraceAttributes): TraceSpan;
  /** Notes a point in time within the operation. */
  addEvent(name: string, attributes?: TraceAttributes): void;
  /** Connects the operation with one that is not its parent. */
  addLink(other: TraceSpan): void;
  setAttributes(attributes: TraceAttributes): void;
  /** The header fields that make the operation the parent of what another service records. */
  headers(): Readonly<Record<string, string>>;
  /** Ends the operation. Only the first end counts. */
  end(): void;
  /**
   * Records the code or the class of the error that the operation fails with. Only the first counts. The text is not
   * recorded, because it may quote a request.
   */
  noteError(error: unknown): void;
  /** Ends the operation as a failure. */
  fail(error: unknown): void;
}

/** Begins requests to other services that belong to no call. */
export type StartRequest = (name: string, attributes?: TraceAttributes) => TraceSpan;

/** The operation of a caller, as its `traceparent` names it. */
export interface TraceParent {
  readonly traceId: string;
  readonly spanId: string;
  readonly isSampled: boolean;
}

const TRACEPARENT = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-[^,]*)?$/;
const NO_TRACE = "0".repeat(32);
const NO_SPAN = "0".repeat(16);
/** The longest field that is looked at: later versions may be longer than the 55 characters of version 00. */
const MAX_LENGTH = 256;

/**
 * Parses a `traceparent` (W3C Trace Context, section 3.2); undefined where it is absent or malformed. Several fields
 * arrive joined by commas, which is malformed.
 */
export function parseTraceparent(field: string | undefined): TraceParent | undefined {
  if (field === undefined || field.length > MAX_LENGTH) return undefined;
  const [, version, traceId = "", spanId = "", flags = "", more] = TRACEPARENT.exec(field) ?? [];
  if (version === undefined || version === "ff" || (version === "00" && more !== undefined)) return undefined;
  if (traceId === NO_TRACE || spanId === NO_SPAN) return undefined;
  return { traceId, spanId, isSampled: (Number.parseInt(flags, 16) & 1) === 1 };
}
