// The header and trailer fields of gRPC over HTTP/2: the timeout of a call and its
// status, which comes in trailers, or in the headers when there is no message.
import type { IncomingHttpHeaders, OutgoingHttpHeaders } from "node:http";
import { create, toBinary } from "@bufbuild/protobuf";
import { type Any, AnySchema, anyPack } from "@bufbuild/protobuf/wkt";
import type { ConnectError } from "@connectrpc/connect";
import { StatusSchema } from "#gen/google/rpc/status_pb.js";
import { TYPE_URL_PREFIX } from "../../codec/type-registry.js";
import { invalidRequest } from "../../kernel/errors.js";
import { HOP_BY_HOP_FIELDS } from "./http-message.js";

/**
 * Writes a content type of gRPC or gRPC-Web in lower case and without parameters, because the front ends compare the
 * whole type. Some clients add a charset, which means nothing there.
 */
export function simplifyGrpcType(headers: IncomingHttpHeaders): void {
  const type = headers["content-type"];
  if (type === undefined || !GRPC_TYPE.test(type)) return;
  const end = type.indexOf(";");
  headers["content-type"] = (end < 0 ? type : type.slice(0, end).trimEnd()).toLowerCase();
}

const GRPC_TYPE = /^application\/grpc/i;

/** Trailer fields by lower-case name. */
export type GrpcTrailers = Record<string, string>;

// Clients limit the size of headers, some to 8 KiB. A status without its last details is better than one that the
// client rejects.
const MAX_DETAILS_BYTES = 4_096;
const MAX_MESSAGE_LENGTH = 1_024;

/**
 * Encodes the value of `grpc-message`: `%` and bytes of UTF-8 outside 0x20-0x7E become `%XX`. Nothing else may be
 * escaped: common clients do not decode reserved characters such as `:`.
 */
export function encodeGrpcMessage(text: string): string {
  if (isPlain(text)) return text;
  let encoded = "";
  for (const byte of Buffer.from(text)) {
    encoded +=
      byte < 0x20 || byte > 0x7e || byte === 0x25
        ? `%${byte.toString(16).toUpperCase().padStart(2, "0")}`
        : String.fromCharCode(byte);
  }
  return encoded;
}

function isPlain(text: string): boolean {
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code < 0x20 || code > 0x7e || code === 0x25) return false;
  }
  return true;
}

/** Builds the trailers of a failed call, with google.rpc.Status in `grpc-status-details-bin`. */
export function buildErrorTrailers(error: ConnectError): GrpcTrailers {
  const trailers: GrpcTrailers = {};
  error.metadata.forEach((value, name) => {
    if (!isProtocolField(name)) trailers[name] = value;
  });
  const message = error.rawMessage.slice(0, MAX_MESSAGE_LENGTH);
  trailers["grpc-status"] = String(error.code);
  trailers["grpc-message"] = encodeGrpcMessage(message);
  if (error.details.length > 0) trailers["grpc-status-details-bin"] = encodeStatusDetails(error, message);
  return trailers;
}

function encodeStatusDetails(error: ConnectError, message: string): string {
  const details: Any[] = [];
  let bytes = 0;
  for (const detail of error.details) {
    const any =
      "desc" in detail
        ? anyPack(detail.desc, create(detail.desc, detail.value))
        : create(AnySchema, { typeUrl: TYPE_URL_PREFIX + detail.type, value: detail.value });
    bytes += any.typeUrl.length + any.value.length;
    if (bytes > MAX_DETAILS_BYTES) break;
    details.push(any);
  }
  const status = create(StatusSchema, { code: error.code, message, details });
  return Buffer.from(toBinary(StatusSchema, status)).toString("base64").replace(/=+$/, "");
}

/** Whether a field belongs to HTTP or gRPC itself, so that no handler may set it. */
export function isProtocolField(name: string): boolean {
  return (name.startsWith("grpc-") && name !== "grpc-accept-encoding") || PROTOCOL_FIELDS.has(name);
}

const PROTOCOL_FIELDS: ReadonlySet<string> = new Set([
  ...HOP_BY_HOP_FIELDS,
  "content-encoding",
  "content-length",
  "content-type",
  "host",
]);

/** Adds the fields that a handler set to headers or trailers, but for those of HTTP and gRPC and the id of the request. */
export function addFields(to: OutgoingHttpHeaders, fields: Headers | undefined, prefix = ""): OutgoingHttpHeaders {
  fields?.forEach((value, name) => {
    if (isProtocolField(name) || name === "x-request-id") return;
    to[prefix + name] = name === "set-cookie" ? fields.getSetCookie() : value;
  });
  return to;
}

/** The rule of `grpc-timeout` (gRPC over HTTP/2, "Timeout"). */
const BAD_GRPC_TIMEOUT = "grpc-timeout must be one to eight digits and one of H, M, S, m, u, n";

const unitMs: Readonly<Record<string, number>> = { H: 3_600_000, M: 60_000, S: 1_000, m: 1, u: 1e-3, n: 1e-6 };

/**
 * Parses a `grpc-timeout` header to milliseconds; NaN when it is malformed (gRPC over HTTP/2, "Timeout": one to eight
 * digits and a unit).
 */
export function parseGrpcTimeout(value: string): number {
  const digits = value.length - 1;
  const unit = unitMs[value.charAt(digits)];
  if (unit === undefined || digits < 1 || digits > 8) return Number.NaN;
  let amount = 0;
  for (let i = 0; i < digits; i++) {
    const digit = value.charCodeAt(i) - 48;
    if (digit < 0 || digit > 9) return Number.NaN;
    amount = amount * 10 + digit;
  }
  return amount * unit;
}

/** Parses a `connect-timeout-ms` header to milliseconds; NaN when it is malformed (Connect protocol, "Timeout"). */
export function parseConnectTimeout(value: string): number {
  return /^\d{1,10}$/.test(value) ? Number(value) : Number.NaN;
}

/**
 * Reads the `grpc-timeout` of a request, in milliseconds; undefined where there is none.
 *
 * @throws ApiError INVALID_ARGUMENT when it is malformed
 */
export function readGrpcTimeout(field: string | readonly string[] | undefined): number | undefined {
  if (field === undefined) return undefined;
  const ms = parseGrpcTimeout(String(field));
  if (Number.isNaN(ms)) throw invalidRequest(BAD_GRPC_TIMEOUT);
  return ms;
}

/**
 * Reads the `connect-timeout-ms` of a request; undefined where there is none.
 *
 * @throws ApiError INVALID_ARGUMENT when it is malformed
 */
export function readConnectTimeout(field: string | readonly string[] | undefined): number | undefined {
  if (field === undefined) return undefined;
  const ms = parseConnectTimeout(String(field));
  if (Number.isNaN(ms)) throw invalidRequest("connect-timeout-ms must be a whole number of at most ten digits");
  return ms;
}
