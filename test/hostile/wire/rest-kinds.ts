// JSON bodies and query strings for every operation of the service's own OpenAPI document. Every
// response is judged as those of the request fuzzer are.
import { gzipSync } from "node:zlib";
import type { FuzzRequest } from "../../contract/fuzz-request.js";
import { createJudge, type FuzzResponse, type Judge } from "../../contract/fuzz-response.js";
import { BODIES, PIECES, QUERIES } from "../../contract/fuzz-spoil.js";
import {
  type AnyObject,
  type ApiDocument,
  atRef,
  createValidators,
  endingOperationsOf,
  type PlacedOperation,
} from "../../support/openapi/document.js";
import type { Random } from "../../support/openapi/random.js";
import { queryPart, readDocument, requestOf, withQuery } from "../../support/openapi/request.js";
import { valueFor } from "../../support/openapi/values.js";
import { mutateBytes } from "./bytes.js";
import type { Kind, Peer, Sent } from "./campaign.js";
import { RESPONSE_MS, sendHttp1 } from "./http1-connection.js";
import { jsonText, spoilText } from "./json-text.js";
import type { Target } from "./target.js";

/** The most requests of a connection. */
const BATCH = 32;
// They would take from later inputs what those speak of.
const DESTRUCTIVE = /delete|revoke|remove/i;

/** Makes the kind of JSON bodies. */
export function createJsonKind(target: Target): Promise<Kind> {
  return createRestKind(target, isWrite, (document, operation, random, peer) => {
    const { method, path, headers } = plainRequest(operation, peer);
    const { body, encoding } = jsonBody(document, operation, random);
    const type = random.chance(0.9) ? "application/json" : random.pick(TYPES);
    return { method, path, headers: { ...headers, ...encoding, "content-type": type }, body };
  });
}

/** Makes the kind of query strings, and of paths. */
export function createQueryKind(target: Target): Promise<Kind> {
  return createRestKind(target, isRead, (document, operation, random, peer) => {
    const request = plainRequest(operation, peer);
    const [before = "", required = ""] = request.path.split("?");
    const path = random.chance(0.1) ? spoilPath(before, random) : before;
    const parts = required === "" || random.chance(0.2) ? [] : [required];
    for (let more = random.int(5); more > 0; more--) parts.push(parameter(document, operation, random));
    return { ...request, path: targetText(withQuery(path, parts), random), body: undefined };
  });
}

type MakeRequest = (document: ApiDocument, operation: PlacedOperation, random: Random, peer: Peer) => FuzzRequest;

const isWrite = ({ requestBody, operationId }: PlacedOperation) =>
  requestBody?.content["application/json"] !== undefined && !DESTRUCTIVE.test(operationId);
const isRead = ({ method }: PlacedOperation) => method === "GET";

async function createRestKind(
  { url }: Target,
  isFor: (operation: PlacedOperation) => boolean,
  make: MakeRequest,
): Promise<Kind> {
  const document = await readDocument(url);
  const operations = endingOperationsOf(document);
  const judge = createJudge({ operations, validators: createValidators(document) });
  const suitable = operations.filter(isFor);
  return {
    send(random, peer) {
      const requests = Array.from({ length: 1 + random.int(BATCH) }, () =>
        make(document, random.pick(suitable), random, peer),
      );
      return sendRequests(requests, judge, peer);
    },
  };
}

function sendRequests(requests: readonly FuzzRequest[], judge: Judge, peer: Peer): Promise<Sent> {
  return sendHttp1(peer, requests.map(bytesOf), {
    pieces: "together",
    quietMs: RESPONSE_MS,
    onAnswer(response, number) {
      const request = requests[number];
      peer.count(String(response.status));
      const fault = request === undefined ? "an answer to nothing" : faultOf(judge, request, response.status, response);
      if (fault === undefined) return;
      const sent = request === undefined ? "" : bytesOf(request).toString("latin1").slice(0, 1_500);
      peer.fault(
        `${fault}: ${response.status} ${response.body.toString("latin1").slice(0, 300)} to ${JSON.stringify(sent)}`,
      );
    },
  });
}

function faultOf(judge: Judge, request: FuzzRequest, status: number, response: { headers: object; body: Buffer }) {
  const given: FuzzResponse = { status, headers: response.headers as FuzzResponse["headers"], bytes: response.body };
  try {
    return judge(request, given).fault;
  } catch (error) {
    return `cannot be judged: ${error}`;
  }
}

function bytesOf({ method, path, headers, body }: FuzzRequest): Buffer {
  const bytes = Buffer.from(body ?? "");
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  if (body !== undefined) lines.push(`content-length: ${bytes.length}\r\n`);
  return Buffer.concat([Buffer.from(`${method} ${path} HTTP/1.1\r\n${lines.join("")}\r\n`, "latin1"), bytes]);
}

function plainRequest(operation: PlacedOperation, { target, batch }: Peer): FuzzRequest {
  const { method, path } = requestOf(operation, () => target.organisation);
  return {
    method,
    path,
    headers: {
      host: `127.0.0.1:${target.port}`,
      authorization: `Bearer ${target.token}`,
      "x-request-id": `b${batch}`,
      "x-forwarded-for": `10.${batch % 250}.0.1`,
    },
    body: undefined,
  };
}

const TYPES = [
  "text/plain",
  "application/json; charset=utf-8",
  "application/merge-patch+json",
  "application/json;;=",
  "",
];

function schemaOf(document: ApiDocument, { requestBody }: PlacedOperation): AnyObject {
  const { schema = {} } = requestBody?.content["application/json"] ?? {};
  return typeof schema.$ref === "string" ? (atRef(document, schema.$ref) as AnyObject) : schema;
}

function jsonBody(document: ApiDocument, operation: PlacedOperation, random: Random) {
  const schema = schemaOf(document, operation);
  const valid = () => JSON.stringify(valueFor(schema, document, random));
  const names = Object.keys((schema.properties ?? {}) as object);
  const choice = random.int(100);
  let body: string | Buffer;
  if (choice < 3) body = valid();
  else if (choice < 45) body = spoilText(valid(), random);
  else if (choice < 75) body = jsonText(names, random);
  else if (choice < 88) body = mutateBytes(Buffer.from(valid()), random);
  else body = random.pick(BODIES);
  if (!random.chance(0.03)) return { body, encoding: {} };
  const packed = random.chance(0.5) ? gzipSync(body) : mutateBytes(gzipSync(body), random);
  return { body: packed, encoding: { "content-encoding": random.pick(["gzip", "gzip", "br", "x-gzip", "zstd"]) } };
}

const VALUES = [
  ..."0|1|-1|1e3|0x1|2147483648|9223372036854775808|99999999999999999999|NaN|true|TRUE|null|%00|%0a|%ff|%c3%28".split(
    "|",
  ),
  ..."%f0%9f%98%80|%|%2|%zz|..%2F..|/|-|*|a+b|a%20b|__proto__|[]|{}|a,b,,c|1s|1.5s|2026-01-31T12:00:00Z|\"|'|;".split(
    "|",
  ),
  "a".repeat(3_000),
  "",
];

function parameter(document: ApiDocument, operation: PlacedOperation, random: Random): string {
  if (operation.parameters.length === 0 || random.chance(0.2)) return random.pick(QUERIES);
  const { name, schema } = random.pick(operation.parameters);
  const written = random.pick([
    name,
    name,
    name,
    camel(name),
    snake(name),
    `${name}[]`,
    `${name}.x`,
    name.toUpperCase(),
  ]);
  const value = random.chance(0.3) ? queryPart("", valueFor(schema, document, random)).slice(1) : random.pick(VALUES);
  return random.chance(0.95) ? `${written}=${value}` : random.pick([written, `=${value}`, `${written}==${value}`, "&"]);
}

function spoilPath(path: string, random: Random): string {
  const parts = path.split("/");
  const at = 1 + random.int(parts.length);
  parts.splice(at, random.int(2), random.pick(PIECES));
  return parts.join("/").replace(/^\/*/, "/");
}

// Other bytes than these are refused by the parser of HTTP, and belong to another kind.
function targetText(target: string, random: Random): string {
  const text = random.chance(0.1) ? mutateBytes(Buffer.from(target), random).toString("latin1") : target;
  return text.replace(/^[^/]+/, "").replace(/[^!-~]/g, "%") || "/";
}

function camel(name: string): string {
  return name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

function snake(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}
