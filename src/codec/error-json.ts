// Errors over REST: google.rpc.Status as JSON (AIP-193).
import { create, fromBinary, isMessage, toBinary } from "@bufbuild/protobuf";
import { Code, type ConnectError } from "@connectrpc/connect";
import { RetryInfoSchema } from "#gen/google/rpc/error_details_pb.js";
import { formatBytes, quote } from "./json-scalar.js";
import { formatAny, formatWithType, type MessageWriters } from "./json-wkt.js";
import { TYPE_URL_PREFIX } from "./type-registry.js";

type Detail = ConnectError["details"][number];

const statusOf: Readonly<Partial<Record<number, number>>> = {
  [Code.Canceled]: 499,
  [Code.Unknown]: 500,
  [Code.InvalidArgument]: 400,
  [Code.DeadlineExceeded]: 504,
  [Code.NotFound]: 404,
  [Code.AlreadyExists]: 409,
  [Code.PermissionDenied]: 403,
  [Code.ResourceExhausted]: 429,
  [Code.FailedPrecondition]: 400,
  [Code.Aborted]: 409,
  [Code.OutOfRange]: 400,
  [Code.Unimplemented]: 501,
  [Code.Internal]: 500,
  [Code.Unavailable]: 503,
  [Code.DataLoss]: 500,
  [Code.Unauthenticated]: 401,
};

/** The HTTP status of an RPC code, as google.rpc.Code maps them; 500 for an unknown code. */
export function httpStatusOf(code: Code): number {
  return statusOf[code] ?? 500;
}

/** Formats the body of an error, which always has `code`, `message` and `details`. */
export function formatError(error: ConnectError, writers: MessageWriters): string {
  const details = error.details.map((detail) => detailText(detail, writers)).join(",");
  return `{"code":${error.code},"message":${quote(error.rawMessage.toWellFormed())},"details":[${details}]}`;
}

/** The delay before another attempt in whole seconds; undefined without google.rpc.RetryInfo. */
export function retryAfterOf(error: ConnectError): number | undefined {
  if (error.code !== Code.ResourceExhausted && error.code !== Code.Unavailable) return undefined;
  const delay = error.findDetails(RetryInfoSchema)[0]?.retryDelay;
  if (delay === undefined) return undefined;
  return Math.max(0, Number(delay.seconds) + (delay.nanos > 0 ? 1 : 0));
}

// A detail is a type with an init object, or bytes of a remote error. If it cannot be written, a simpler form of it is,
// so that the caller always gets the error.
function detailText(detail: Detail, writers: MessageWriters): string {
  if ("type" in detail) return writeEncoded(TYPE_URL_PREFIX + detail.type, detail.value, writers);
  const typeUrl = TYPE_URL_PREFIX + detail.desc.typeName;
  try {
    return formatWithType(typeUrl, detail.desc, detail.value, writers);
  } catch {
    return fallbackText(typeUrl, detail);
  }
}

function writeEncoded(typeUrl: string, value: Uint8Array, writers: MessageWriters): string {
  try {
    return formatAny({ typeUrl, value }, writers);
  } catch {
    return bytesText(typeUrl, value);
  }
}

function bytesText(typeUrl: string, value: Uint8Array): string {
  return `{"@type":${quote(typeUrl)},"value":${formatBytes(value)}}`;
}

function fallbackText(typeUrl: string, { desc, value }: Exclude<Detail, { type: string }>): string {
  try {
    const message = isMessage(value, desc) ? value : create(desc, value as Record<string, unknown>);
    const bytes = toBinary(desc, message);
    fromBinary(desc, bytes);
    return bytesText(typeUrl, bytes);
  } catch {
    return `{"@type":${quote(typeUrl)}}`;
  }
}
