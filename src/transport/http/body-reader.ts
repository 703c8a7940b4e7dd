// Reads the body of a request: bounded, decompressed, and of an accepted type.
import { isUtf8 } from "node:buffer";
import { decodePaddedBase64 } from "../../codec/base64.js";
import { ApiError, callerGone, invalidArgument, invalidRequest, unimplemented } from "../../kernel/errors.js";
import { collectBody } from "./body-collector.js";
import { HttpError } from "./http-message.js";
import { inflate, type RequestCoding, tooLarge } from "./inflate.js";
import type { Request } from "./request.js";

const JSON_TYPE = /^application\/(?:json|[a-z0-9!#$&^_.+-]+\+json)$/;

/**
 * Reads the whole body and decodes its Content-Encoding.
 *
 * @param limit the most bytes it may have, before and after decompression.
 * @throws HttpError 413 and 415; ApiError INVALID_ARGUMENT for broken compression, RESOURCE_EXHAUSTED when the service
 * has buffered too many bytes; the error of {@link callerGone}.
 */
export async function readBody(request: Request, limit: number): Promise<Uint8Array> {
  const announced = request.fields["content-length"];
  if (announced !== undefined && Number(announced) > limit) throw bodyTooLarge(limit);
  const encoding = (request.fields["content-encoding"] ?? "identity").trim().toLowerCase();
  const coding = CODINGS[encoding];
  if (coding === undefined && encoding !== "identity" && encoding !== "")
    throw new HttpError(415, unimplemented("content-encoding: must be gzip or br"), { "accept-encoding": "gzip, br" });
  const bytes = await collect(request, limit);
  if (coding === undefined) return bytes;
  try {
    return await inflate("body", coding, bytes, limit, (most) => request.chargeBody(most));
  } catch (error) {
    throw isTooLarge(error) ? new HttpError(413, error) : error;
  }
}

/**
 * Reads the whole body as it was sent, with its Content-Encoding.
 *
 * @param limit the most bytes it may have.
 * @throws HttpError 413; ApiError RESOURCE_EXHAUSTED when the service has buffered too many bytes; the error of {@link
 * callerGone}.
 */
export async function readRaw(request: Request, limit: number): Promise<Uint8Array> {
  if (Number(request.fields["content-length"] ?? 0) > limit) throw bodyTooLarge(limit);
  return collect(request, limit);
}

/** How many bytes the padding of a body in several chunks may add. */
const PADDING_BYTES = 4 * 1024;

/**
 * Reads a body in base64, which may consist of padded chunks. Its encoded and its decoded form are charged.
 *
 * @param limit the most bytes it may have, decoded.
 * @param fault the error of one that has more
 * @throws ApiError `fault`, INVALID_ARGUMENT for what is not base64, RESOURCE_EXHAUSTED when the service has
 * buffered too many bytes; the error of {@link callerGone}.
 */
export async function readBase64(request: Request, limit: number, fault: ApiError): Promise<Uint8Array> {
  const most = Math.ceil(limit / 3) * 4 + PADDING_BYTES;
  if (Number(request.fields["content-length"] ?? 0) > most) throw fault;
  const text = await collect(request, most, fault);
  request.chargeBody((text.length / 4) * 3);
  const bytes = decodePaddedBase64(text);
  if (bytes === undefined) throw invalidArgument({ field: "body", rule: "is not valid base64" });
  if (bytes.length > limit) throw fault;
  return bytes;
}

/** `{}` with some space around it. */
const EMPTY_OBJECT_BYTES = 16;

/**
 * Whether a body is empty or an empty JSON object. Reads hardly more than that.
 *
 * @throws the error of {@link callerGone}
 */
export async function isEmptyBody(request: Request): Promise<boolean> {
  if (Number(request.fields["content-length"] ?? 0) > EMPTY_OBJECT_BYTES) return false;
  try {
    const bytes = await collect(request, EMPTY_OBJECT_BYTES);
    return bytes.length === 0 || Buffer.from(bytes).toString("latin1").trim() === "{}";
  } catch (error) {
    if (error instanceof HttpError) return false;
    throw error;
  }
}

/**
 * Decodes the text of a JSON body.
 *
 * @param contentType the Content-Type header; without one the body is taken for JSON.
 * @throws HttpError 415 for another type or charset; ApiError INVALID_ARGUMENT for bytes that are not UTF-8.
 */
export function decodeJsonText(bytes: Uint8Array, contentType: string | undefined): string {
  if (contentType !== undefined && contentType !== "application/json" && !isJsonType(contentType)) {
    const form = contentType.toLowerCase().includes("form");
    const hint = form ? ", forms are not accepted" : "";
    throw new HttpError(415, invalidRequest(`content-type: must be application/json in utf-8${hint}`), {
      "accept-post": "application/json",
    });
  }
  if (!isUtf8(bytes)) throw invalidArgument({ field: "body", rule: "must be UTF-8" });
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("utf8");
}

/**
 * Reads the body of a form, which stays percent-encoded.
 *
 * @throws HttpError 413 and 415; ApiError INVALID_ARGUMENT for bytes that are not UTF-8; the error of {@link callerGone}.
 */
export async function readFormText(request: Request, limit: number): Promise<string> {
  const bytes = await readBody(request, limit);
  if (!isUtf8(bytes)) throw invalidArgument({ field: "body", rule: "must be UTF-8" });
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("utf8");
}

function collect(request: Request, limit: number, fault?: ApiError): Promise<Uint8Array> {
  return new Promise((resolve, reject) => {
    collectBody(request, {
      maxBytes: limit,
      readAnnouncedLength: () => Number(request.fields["content-length"] ?? 0),
      onBody: resolve,
      onTooLarge: () => reject(fault ?? bodyTooLarge(limit)),
      onFault: reject,
      onGone: () => reject(callerGone()),
    });
  });
}

const CODINGS: Readonly<Record<string, RequestCoding>> = { gzip: "gzip", "x-gzip": "gzip", br: "br" };

function isTooLarge(error: unknown): error is ApiError {
  return error instanceof ApiError && error.rejection === "size";
}

function bodyTooLarge(limit: number): HttpError {
  return new HttpError(413, tooLarge("body", limit));
}

function isJsonType(contentType: string): boolean {
  const [type = "", ...parameters] = contentType.toLowerCase().split(";");
  if (!JSON_TYPE.test(type.trim())) return false;
  return parameters.every((parameter) => {
    const [name = "", value = ""] = parameter.split("=");
    return name.trim() !== "charset" || ["utf-8", "utf8"].includes(value.trim().replaceAll('"', ""));
  });
}
