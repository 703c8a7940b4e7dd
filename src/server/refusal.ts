// Answers that are given before or instead of a call: as google.rpc.Status in
// JSON for REST, in Connect's error form for RPC over HTTP.

import type { OutgoingHttpHeaders, ServerResponse } from "node:http";
import type { Http2ServerResponse } from "node:http2";
import { create, toJson } from "@bufbuild/protobuf";
import type { ConnectError } from "@connectrpc/connect";
import { errorToJson } from "@connectrpc/connect/protocol-connect";
import { errorTrailers } from "./grpc-status.js";

/** A response of either HTTP version. */
export type AnyResponse = ServerResponse | Http2ServerResponse;

/** Whether nobody is left to read; HTTP/2's responses do not say so themselves. */
export function isGone(res: AnyResponse): boolean {
  return "stream" in res ? res.stream.destroyed || res.stream.closed : res.destroyed;
}

/** Ends `res` with a JSON document that nobody may keep; a peer that has gone gets nothing. */
export function sendJson(res: AnyResponse, status: number, json: string, headers: OutgoingHttpHeaders = {}): void {
  sendBody(res, status, "application/json", json, { ...headers, "cache-control": "no-store" });
}

/** Ends `res` with a body; a peer that has gone gets nothing. */
export function sendBody(
  res: AnyResponse,
  status: number,
  contentType: string,
  body: string | Buffer,
  headers: OutgoingHttpHeaders = {},
): void {
  if (res.headersSent || isGone(res)) return;
  const fields = {
    ...headers,
    "content-type": contentType,
    "content-length": Buffer.byteLength(body),
    "x-content-type-options": "nosniff",
  };
  // The two signatures are the same, but TypeScript does not try a union's members one by one.
  (res as ServerResponse).writeHead(status, fields);
  res.end(body);
}

/**
 * Ends `res` with a gRPC status alone, in the headers: what gRPC and gRPC-Web clients understand
 * even when nothing else about their request was in order.
 */
export function sendGrpcStatus(res: AnyResponse, contentType: string, error: ConnectError): void {
  if (res.headersSent || isGone(res)) return;
  (res as ServerResponse).writeHead(200, { "content-type": contentType, "content-length": 0, ...errorTrailers(error) });
  res.end();
}

/** An error as google.rpc.Status in JSON, the body of every REST error. */
export function statusJson(error: ConnectError): string {
  const details = error.details.flatMap((detail) => {
    if (!("desc" in detail)) return [];
    const fields = toJson(detail.desc, create(detail.desc, detail.value)) as object;
    return [{ "@type": `type.googleapis.com/${detail.desc.typeName}`, ...fields }];
  });
  return JSON.stringify({ code: error.code, message: error.rawMessage, details });
}

/** An error in the form of the Connect protocol ("Error JSON"). */
export function connectJson(error: ConnectError): string {
  return JSON.stringify(errorToJson(error, undefined));
}
