// Answers that are given before or instead of a call: as google.rpc.Status in
// JSON for REST, in Connect's error form for RPC over HTTP.

import type { OutgoingHttpHeaders, ServerResponse } from "node:http";
import type { ConnectError } from "@connectrpc/connect";
import { errorToJson } from "@connectrpc/connect/protocol-connect";
import { errorText } from "../gateway/error-json.js";
import { type HttpResponse, isGone } from "../gateway/http-message.js";
import { createJsonWriters } from "../gateway/json-writer.js";
import { createTypeRegistry } from "../gateway/type-registry.js";
import { errorTrailers } from "./grpc-status.js";

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

/** Ends `res` without a body; a peer that has gone gets nothing. */
export function sendEmpty(res: HttpResponse, status: number, headers: OutgoingHttpHeaders): void {
  if (res.headersSent || isGone(res)) return;
  (res as ServerResponse).writeHead(status, headers);
  (res as ServerResponse).end();
}

/**
 * Ends `res` with a gRPC status alone, in the headers: what gRPC and gRPC-Web clients understand
 * even when nothing else about their request was in order.
 */
export function sendGrpcStatus(res: HttpResponse, contentType: string, error: ConnectError): void {
  if (res.headersSent || isGone(res)) return;
  (res as ServerResponse).writeHead(200, { "content-type": contentType, "content-length": 0, ...errorTrailers(error) });
  res.end();
}

/** An error as google.rpc.Status in JSON, the body of every REST error. */
export function statusJson(error: ConnectError): string {
  return errorText(error, writers);
}

/** An error in the form of the Connect protocol ("Error JSON"). */
export function connectJson(error: ConnectError): string {
  return JSON.stringify(errorToJson(error, undefined));
}
