// Answers that are given before or instead of a call: as google.rpc.Status in
// JSON for REST, in Connect's error form for RPC over HTTP.

import type { OutgoingHttpHeaders } from "node:http";
import type { ConnectError } from "@connectrpc/connect";
import { errorToJson } from "@connectrpc/connect/protocol-connect";
import { errorText } from "../../codec/error-json.js";
import { errorTrailers } from "../../codec/grpc-status.js";
import { createJsonWriters } from "../../codec/json-writer.js";
import { createTypeRegistry } from "../../codec/type-registry.js";
import { sendWhole } from "./answer-writer.js";
import { abort, type HttpResponse } from "./http-message.js";

// For errors that come up before any method is known: the details of google.rpc are all they have.
const writers = createJsonWriters(createTypeRegistry([]));

/** Ends `res` with a JSON document that nobody may keep; a peer that has gone gets nothing. */
export function sendJson(res: HttpResponse, status: number, json: string, headers: OutgoingHttpHeaders = {}): void {
  sendBody(res, status, "application/json", json, { ...headers, "cache-control": "no-store" });
}

/** Ends `res` with a body; a peer that has gone gets nothing. */
export function sendBody(
  res: HttpResponse,
  status: number,
  contentType: string,
  body: string | Buffer,
  headers: OutgoingHttpHeaders = {},
): void {
  const fields = {
    ...headers,
    "content-type": contentType,
    "content-length": Buffer.byteLength(body),
    "x-content-type-options": "nosniff",
  };
  sendOrAbort(res, status, fields, body);
}

/** Ends `res` without a body; a peer that has gone gets nothing. */
export function sendEmpty(res: HttpResponse, status: number, headers: OutgoingHttpHeaders): void {
  sendOrAbort(res, status, headers);
}

/**
 * Ends `res` with a gRPC status alone, in the headers: what gRPC and gRPC-Web clients understand
 * even when nothing else about their request was in order.
 */
export function sendGrpcStatus(res: HttpResponse, contentType: string, error: ConnectError): void {
  sendOrAbort(res, 200, { "content-type": contentType, "content-length": 0, ...errorTrailers(error) });
}

/** Ends a stream of the Connect protocol with an error and nothing before it ("Error End Stream Message"). */
export function sendEndStream(res: HttpResponse, contentType: string, error: ConnectError): void {
  const json = Buffer.from(JSON.stringify({ error: errorToJson(error, undefined) }));
  const envelope = Buffer.alloc(5);
  envelope[0] = END_STREAM_FLAG;
  envelope.writeUInt32BE(json.length, 1);
  const body = Buffer.concat([envelope, json]);
  sendOrAbort(res, 200, { "content-type": contentType, "content-length": body.length }, body);
}

const END_STREAM_FLAG = 2;

// There is no other answer to fall back to: where even this one is too much, the connection is ended.
function sendOrAbort(res: HttpResponse, status: number, headers: OutgoingHttpHeaders, body?: string | Buffer): void {
  try {
    sendWhole(res, status, headers, body);
  } catch {
    abort(res);
  }
}

/** An error as google.rpc.Status in JSON, the body of every REST error. */
export function statusJson(error: ConnectError): string {
  return errorText(error, writers);
}

/** An error in the form of the Connect protocol ("Error JSON"). */
export function connectJson(error: ConnectError): string {
  return JSON.stringify(errorToJson(error, undefined));
}
