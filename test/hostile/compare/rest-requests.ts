// Requests of JSON over HTTP and of pages, most of them right, and requests of HTTP that are wrong in any part.
import { type FuzzRequest, validRequest } from "../../contract/fuzz-request.js";
import { spoil } from "../../contract/fuzz-spoil.js";
import type { FuzzWorld } from "../../contract/fuzz-world.js";
import type { PlacedOperation } from "../../support/openapi/document.js";
import type { Random } from "../../support/openapi/random.js";
import { CONNECT, GRPC, rpcCall, WEB } from "../wire/envelope-kind.js";
import type { Field } from "../wire/hpack.js";
import { oddRequest } from "../wire/http1-kind.js";
import { fieldsFor } from "../wire/http2-fields.js";
import type { WireRequest } from "./exchange.js";
import { chooseToken } from "./rpc-requests.js";
import { findRpc } from "./services.js";
import { type Contents, ORIGIN, type Tokens } from "./world.js";

const EXTRAS: readonly Field[] = [
  ["accept-encoding", "gzip"],
  ["accept-encoding", "br"],
  ["accept-encoding", "gzip;q=0.5, br;q=0.7, *;q=0"],
  ["grpc-timeout", "20S"],
  ["grpc-timeout", "soon"],
  ["grpc-timeout", "0S"],
  ["x-server-timeout", "20.5"],
  ["x-server-timeout", "0"],
  ["x-server-timeout", "soon"],
  ["if-none-match", "*"],
  ["origin", ORIGIN],
  ["origin", "https://evil.example"],
  ["x-request-id", "mine-1"],
  ["x-request-id", "a b"],
  ["grpc-metadata-x", "y"],
  ["grpc-metadata-authorization", "Bearer x"],
  ["traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"],
  ["accept", "text/event-stream"],
  ["connect-protocol-version", "2"],
  ["connect-timeout-ms", "0"],
  ["range", "bytes=0-1"],
  ["expect", "something"],
];

/** A request of an operation of the document. */
export function restRequest(world: FuzzWorld, operation: PlacedOperation, tokens: Tokens, random: Random): WireRequest {
  const request = validRequest(world, operation, random);
  const [, authorization] = chooseToken(request.headers.authorization, tokens, random);
  delete request.headers.authorization;
  if (authorization !== undefined) request.headers.authorization = authorization;
  const isSpoilt = random.chance(0.3);
  if (isSpoilt) {
    spoil(request, world, random);
    const { authorization: spoilt = "" } = request.headers;
    // What a changed character of a token says depends on the token, and those of the two services differ.
    if (spoilt !== authorization && /^bearer eyJ/i.test(spoilt) && !isWhole(spoilt, tokens))
      request.headers.authorization = `Bearer ${tokens.owner.slice(0, -5)}`;
  }
  const more = random.chance(0.25) ? [random.pick(EXTRAS)] : [];
  if (random.chance(0.06)) replaceMethod(request, random);
  return toWire(isSpoilt ? "REST, spoilt" : "REST", request, more, random);
}

function isWhole(authorization: string, tokens: Tokens): boolean {
  return Object.values(tokens).includes(authorization.slice("Bearer ".length));
}

function replaceMethod(request: FuzzRequest, random: Random): void {
  if (request.method === "GET") request.method = random.pick(["HEAD", "OPTIONS", "POST"]);
  else if (request.method !== "POST") {
    request.headers["x-http-method-override"] = random.pick([request.method, request.method.toLowerCase(), "HEAD", ""]);
    request.method = "POST";
  }
}

function toWire(
  label: string,
  { method, path, headers, body }: FuzzRequest,
  more: readonly Field[],
  random: Random,
): WireRequest {
  const fields: Field[] = [...Object.entries(headers), ...more];
  const bytes = body === undefined ? undefined : Buffer.from(body);
  const http = random.chance(0.65) ? 1 : 2;
  return { label, http, method, path, fields, body: bytes, chunked: random.chance(0.1) };
}

const PAGES = [
  ...["/", "/healthz", "/readyz", "/version", "/docs", "/docs/", "/docs/gateway", "/docs/no-such-page", "/favicon.ico"],
  ...[
    "/.well-known/openid-configuration",
    "/.well-known/jwks.json",
    "/oauth",
    "/oauth/token",
    "/oauth/revoke",
    "/activate",
    "/console/session",
  ],
  ...["/orgcheck?verified-org=acme.example", "/orgcheck", "/token", "/metrics", "/robots.txt", "/iam", "/iam/v2beta1"],
  ...["/healthz/", "/healthz?a=b", "//healthz", "/%68ealthz", "/no/such/path", "/registry/notifications"],
];

/** A request of a page, or a preflight. `etagOf` finds what a page was last marked with. */
export function pageRequest(etagOf: (path: string) => string | undefined, random: Random): WireRequest {
  // A megabyte, which is the same each time.
  const path = random.chance(0.01) ? "/openapi.json" : random.pick(PAGES);
  const method = random.pick(["GET", "GET", "GET", "GET", "HEAD", "OPTIONS", "POST", "PUT", "DELETE"]);
  const headers: Record<string, string> = {};
  const etag = random.chance(0.4) ? etagOf(path) : undefined;
  if (etag !== undefined) headers["if-none-match"] = random.pick([etag, `W/${etag}`, `"x", ${etag}`, "*", `${etag}x`]);
  if (random.chance(0.3)) headers["accept-encoding"] = random.pick(["gzip", "br", "gzip, br", "x", "identity;q=0"]);
  if (random.chance(0.15)) headers.origin = random.pick([ORIGIN, "null"]);
  if (method === "OPTIONS" && random.chance(0.7)) {
    headers.origin = ORIGIN;
    headers["access-control-request-method"] = random.pick(["GET", "POST", "PATCH", "QUERY"]);
    if (random.chance(0.5)) headers["access-control-request-headers"] = random.pick(["authorization", "x-secret, te"]);
  }
  const body = method === "POST" ? random.pick(["", "a=b", "{}"]) : undefined;
  if (body !== undefined)
    headers["content-type"] = random.pick(["application/json", "application/x-www-form-urlencoded"]);
  return toWire("page", { method, path, headers, body }, random.chance(0.1) ? [random.pick(EXTRAS)] : [], random);
}

/** A preflight of a method of the API. */
export function preflightRequest(operation: PlacedOperation, random: Random): WireRequest {
  const path = operation.path.replace(/\{[^}]+\}/g, "0123456789abcdef0123456789abcdef01234567");
  const headers = {
    origin: random.pick([ORIGIN, ORIGIN, "https://evil.example"]),
    "access-control-request-method": random.pick([operation.method, "GET", "PURGE"]),
    "access-control-request-headers": random.pick([
      "authorization,content-type",
      "connect-protocol-version",
      "x-secret",
    ]),
  };
  return toWire("preflight", { method: "OPTIONS", path, headers, body: undefined }, [], random);
}

/** Bytes that may be no request, over HTTP/1.1. */
export function oddHttp1Request({ organisation, tokens }: Contents, number: number, random: Random): WireRequest {
  // What is sent more than once must not make different things on each side.
  const target = { organisation, token: tokens.viewer };
  const { bytes, keeps } = oddRequest(random, { target, batch: number });
  const label = keeps ? "odd HTTP/1.1" : "wrong HTTP/1.1";
  return { label, http: 1, method: "", path: "", fields: [], raw: bytes, odd: true };
}

/** Fields that may be malformed, over HTTP/2. */
export function oddHttp2Request({ organisation, tokens }: Contents, random: Random): WireRequest {
  const isWrong = random.chance(0.4);
  const block = fieldsFor({ organisation, token: tokens.viewer }, random, isWrong);
  const findValue = (name: string) => block.find((field) => field[0] === name)?.[1] ?? "";
  const body = random.pick([
    undefined,
    undefined,
    Buffer.alloc(5),
    Buffer.from("{}"),
    Buffer.from([0, 0, 0, 0, 2, 10, 0]),
  ]);
  const path = findValue(":path");
  const label = isWrong ? "wrong HTTP/2" : "odd HTTP/2";
  const endless = path.includes("/Watch");
  return { label, http: 2, method: findValue(":method"), path, fields: [], block, body, endless, rpc: findRpc(path) };
}

/** A call of RPC whose envelopes, compression and fields may each be wrong. */
export function envelopeRequest({ organisation, tokens }: Contents, random: Random): WireRequest {
  const http = random.chance(0.6) ? 2 : 1;
  const types = http === 1 ? [...WEB, ...CONNECT] : [...GRPC, ...GRPC, ...WEB, ...CONNECT];
  const { path, type, fields, body } = rpcCall(random, { target: { organisation, token: tokens.viewer } }, types);
  // Whether a millisecond is over depends on the machine.
  const isSteady = ([name, value]: Field) => name !== "connect-timeout-ms" || value !== "1";
  const all: Field[] = [["content-type", type], ...fields.filter(isSteady)];
  const endless = path.includes("/Watch");
  const label = `envelopes, ${type || "no type"}`;
  return {
    label,
    http,
    method: "POST",
    path,
    fields: all,
    body,
    endless,
    rpc: findRpc(path),
    open: http === 2 && random.chance(0.05),
  };
}
