// What header fields and streams must say, over every protocol and form of messages. Each row is one statement; it is sent in
// each form that can show it.
import type { RpcForm } from "../../support/rpc-forms.js";

/** What is called: a method with one response, one that streams its responses, or one that takes a stream. */
export type WireKind = "unary" | "stream" | "upload";

/** What is unlike a good call. */
export interface WireSent {
  /** The caller; the owner unless said otherwise. */
  readonly as?: "nobody" | "garbled";
  /** The timeout, in the field of the protocol. */
  readonly timeout?: "malformed" | "zero";
  /** `connect-protocol-version`. */
  readonly version?: string;
  /** The size of the message, in bytes. */
  readonly bytes?: number;
  /** A cause of RESOURCE_EXHAUSTED or UNAVAILABLE, for which the call is another one. */
  readonly cause?: "wrong codes" | "unreachable issuer" | "stop";
}

/** What the response must be. */
export interface WireExpected {
  /** The name of the code, as the protocol writes it where its clients look for it. */
  readonly code: string;
  readonly message?: RegExp;
  /** The HTTP status; any unless given. */
  readonly status?: number;
  /** Header fields by lower-case names. */
  readonly fields?: { readonly [name: string]: RegExp };
  /** The details of the error besides ErrorInfo, by their types. */
  readonly details?: readonly string[];
  /** Whether there must be a span of the call. */
  readonly span?: boolean;
}

/** A row of the table. */
export interface WireRule {
  /** The heading of docs/api-rules.md that it belongs to. */
  readonly anchor: string;
  readonly says: string;
  readonly kinds: readonly WireKind[];
  /** The forms that can show it; all unless said otherwise. */
  readonly over?: (form: WireForm) => boolean;
  readonly sent: WireSent;
  readonly expect: WireExpected;
}

/** A form of calls: JSON over HTTP, or one of RPC. */
export type WireForm = RpcForm | "REST";

/** The name of a form. */
export function formName(form: WireForm): string {
  return form === "REST" ? "REST" : form.name;
}

/** Whether errors of a form have the HTTP status of their code. Over gRPC and gRPC-Web, and in streams of Connect, it is 200. */
function hasStatus(form: WireForm): boolean {
  return form === "REST" || !form.isEnveloped;
}

// The methods whose errors say when to retry have side effects, so Connect does not serve them with GET.
const isPost = (form: WireForm) => form === "REST" || form.isGet !== true;
const isConnect = (form: WireForm) => form !== "REST" && form.name.startsWith("Connect");
const isGrpc = (form: WireForm) => form !== "REST" && form.timeout === "grpc-timeout";
const both: readonly WireKind[] = ["unary", "stream"];

const SECONDS = /^[1-9]\d*$/;
const WRONG_VERSION = { version: "2" };

/** The largest message of a method that says nothing else, and of one for everybody, in bytes. */
export const LIMIT_BYTES = 262_144;
const PUBLIC_LIMIT_BYTES = 16_384;

/** When to retry. */
const retries: readonly WireRule[] = [
  {
    anchor: "error-reasons",
    says: "429 has Retry-After where waiting helps, whatever form the error has",
    kinds: ["unary"],
    over: (form) => hasStatus(form) && isPost(form),
    sent: { cause: "wrong codes" },
    expect: { code: "RESOURCE_EXHAUSTED", status: 429, fields: { "retry-after": SECONDS }, details: ["RetryInfo"] },
  },
  {
    anchor: "error-reasons",
    says: "503 has Retry-After where the time is known, whatever form the error has",
    kinds: ["unary"],
    over: (form) => hasStatus(form) && isPost(form),
    sent: { cause: "unreachable issuer" },
    expect: { code: "UNAVAILABLE", status: 503, fields: { "retry-after": SECONDS }, details: ["RetryInfo"] },
  },
  {
    anchor: "error-reasons",
    says: "RESOURCE_EXHAUSTED has RetryInfo where waiting helps, also where the HTTP status is 200",
    kinds: ["unary"],
    over: (form) => !hasStatus(form),
    sent: { cause: "wrong codes" },
    expect: { code: "RESOURCE_EXHAUSTED", status: 200, details: ["RetryInfo"] },
  },
  {
    anchor: "error-reasons",
    says: "UNAVAILABLE has RetryInfo where the time is known, also where the HTTP status is 200",
    kinds: ["unary"],
    over: (form) => !hasStatus(form),
    sent: { cause: "unreachable issuer" },
    expect: { code: "UNAVAILABLE", status: 200, details: ["RetryInfo"] },
  },
  {
    anchor: "streams",
    says: "a stream that ends because the service stops has RetryInfo",
    kinds: ["stream"],
    sent: { cause: "stop" },
    expect: { code: "UNAVAILABLE", status: 200, details: ["RetryInfo"] },
  },
];

/** The challenge of RFC 9110, section 11.6.1, in the form of RFC 6750, section 3. */
const challenges: readonly WireRule[] = [
  {
    anchor: "tokens",
    says: "401 to a call without a token has a challenge, whatever form the error has",
    kinds: both,
    over: hasStatus,
    sent: { as: "nobody" },
    expect: { code: "UNAUTHENTICATED", status: 401, fields: { "www-authenticate": /^Bearer realm="arbor"$/ } },
  },
  {
    anchor: "tokens",
    says: "401 to a call with a token that is not valid says so in its challenge",
    kinds: both,
    over: hasStatus,
    sent: { as: "garbled" },
    expect: {
      code: "UNAUTHENTICATED",
      status: 401,
      fields: { "www-authenticate": /^Bearer realm="arbor", error="invalid_token"$/ },
    },
  },
];

/** Timeouts. */
const timeouts: readonly WireRule[] = [
  {
    anchor: "limits",
    says: "a malformed grpc-timeout is named with its rule, over unary calls and streams alike",
    kinds: ["unary", "stream", "upload"],
    over: isGrpc,
    sent: { timeout: "malformed" },
    expect: {
      code: "INVALID_ARGUMENT",
      message: /^Invalid argument: grpc-timeout must be one to eight digits and one of H, M, S, m, u, n$/,
    },
  },
  {
    anchor: "limits",
    says: "a malformed connect-timeout-ms is named with its rule, over unary calls and streams alike",
    kinds: ["unary", "stream", "upload"],
    over: isConnect,
    sent: { timeout: "malformed" },
    expect: {
      code: "INVALID_ARGUMENT",
      message: /^Invalid argument: connect-timeout-ms must be a whole number of at most ten digits$/,
    },
  },
  {
    anchor: "limits",
    says: "a timeout of zero has passed, over unary calls and streams alike",
    kinds: ["unary", "stream", "upload"],
    sent: { timeout: "zero" },
    expect: { code: "DEADLINE_EXCEEDED", message: /^Deadline exceeded: the call took longer than allowed$/ },
  },
  {
    anchor: "limits",
    says: "a call with a malformed timeout has a span",
    kinds: both,
    sent: { timeout: "malformed" },
    expect: { code: "INVALID_ARGUMENT", span: true },
  },
  {
    anchor: "limits",
    says: "a call with a timeout of zero has a span",
    kinds: both,
    sent: { timeout: "zero" },
    expect: { code: "DEADLINE_EXCEEDED", span: true },
  },
];

function tooLarge(bytes: number): string {
  return `a message of ${bytes} bytes is too large, and the error names the limit of its method`;
}

/** Sizes. */
const sizes: readonly WireRule[] = [
  ...[LIMIT_BYTES + 1, 300_000].map(
    (bytes): WireRule => ({
      anchor: "limits",
      says: tooLarge(bytes),
      kinds: both,
      // A GET has its message in the query, which is far smaller.
      over: (form) => form !== "REST" && !form.isGet,
      sent: { bytes },
      expect: { code: "RESOURCE_EXHAUSTED", message: new RegExp(`\\b${LIMIT_BYTES}\\b`) },
    }),
  ),
  {
    anchor: "limits",
    says: "a message within a stream that is too large gets the limit of its method as well",
    kinds: ["upload"],
    sent: { bytes: PUBLIC_LIMIT_BYTES + 1 },
    // gRPC-Web as text takes no stream.
    over: (form) => form !== "REST" && !form.isText,
    expect: { code: "RESOURCE_EXHAUSTED", message: new RegExp(`\\b${PUBLIC_LIMIT_BYTES}\\b`) },
  },
];

/** The version of the Connect protocol. */
const versions: readonly WireRule[] = [
  {
    anchor: "services",
    says: "an unknown version of the Connect protocol is INVALID_ARGUMENT in the form of the call",
    kinds: both,
    over: isConnect,
    sent: WRONG_VERSION,
    expect: { code: "INVALID_ARGUMENT", message: /^Invalid argument: connect-protocol-version must be 1$/ },
  },
  {
    anchor: "services",
    says: "other protocols than Connect do not look at its version",
    kinds: both,
    over: (form) => !isConnect(form),
    // The call has another error, which tells that it was made.
    sent: { ...WRONG_VERSION, as: "nobody" },
    expect: { code: "UNAUTHENTICATED" },
  },
];

/** The rows. */
export const wireRules: readonly WireRule[] = [...retries, ...challenges, ...timeouts, ...sizes, ...versions];
