// Calls of RPC in every form, most of them right, each in one way or two unlike the others.
import {
  create,
  createRegistry,
  type DescField,
  type DescMessage,
  type DescMethod,
  fromJson,
  getOption,
  type JsonObject,
  type JsonValue,
  type Message,
  toBinary,
  toJsonString,
} from "@bufbuild/protobuf";
import { MethodOptions_IdempotencyLevel } from "@bufbuild/protobuf/wkt";
import { http } from "#gen/google/api/annotations_pb.js";
import { type FuzzRequest, validRequest } from "../../contract/fuzz-request.js";
import type { FuzzWorld } from "../../contract/fuzz-world.js";
import { findMethod } from "../../contract/served.js";
import type { PlacedOperation } from "../../support/openapi/document.js";
import type { Random } from "../../support/openapi/random.js";
import { encodeCall, type RpcForm, seal, unaryForms } from "../../support/rpc-forms.js";
import { mutateBytes } from "../wire/bytes.js";
import { base64, envelopes } from "../wire/envelope-kind.js";
import type { Field } from "../wire/hpack.js";
import type { WireRequest } from "./exchange.js";
import { findRpc, pathOf, services, unaryMethods } from "./services.js";
import { ORIGIN, type Tokens } from "./world.js";

const registry = createRegistry(...services.map(({ file }) => file));

/** What a call is made of. */
export interface RpcCase {
  readonly method: DescMethod;
  readonly messages: readonly Message[];
  readonly authorization: string | undefined;
  readonly forms: readonly RpcForm[];
  /** Header fields besides those that chance adds. */
  readonly fields?: readonly Field[];
  readonly endless?: boolean;
}

/** A call of a unary method, with the message that an operation of the document would have. */
export function unaryCase(world: FuzzWorld, operation: PlacedOperation, random: Random): RpcCase {
  const request = validRequest(world, operation, random);
  const found = findMethod(operation);
  const method =
    found === undefined || found.methodKind !== "unary" || random.chance(0.1) ? random.pick(unaryMethods) : found;
  const message = method === found ? toMessage(method, operation, request) : create(method.input);
  const forwarded: Field[] = request.headers["x-forwarded-for"]
    ? [["x-forwarded-for", request.headers["x-forwarded-for"]]]
    : [];
  return {
    method,
    messages: [message],
    authorization: request.headers.authorization,
    forms: unaryForms,
    fields: forwarded,
  };
}

// The message that the gateway would make of a request; an empty one if the request is none.
function toMessage(method: DescMethod, operation: PlacedOperation, { path, body }: FuzzRequest): Message {
  const json: Record<string, JsonValue> = {};
  const [plain = "", query = ""] = path.split("?");
  const names = [...operation.path.matchAll(/\{([^}]+)\}/g)].map(([, name = ""]) => name);
  const template = operation.path.replace(/[.*+?^$()|[\]\\]/g, "\\$&").replace(/\{[^}]+\}/g, "(.*)");
  const values = new RegExp(`^${template}$`).exec(plain)?.slice(1) ?? [];
  try {
    for (const [i, name] of names.entries()) put(json, method.input, name, decodeURIComponent(values[i] ?? ""));
    for (const [name, value] of new URLSearchParams(query)) put(json, method.input, name, value);
    const field = getOption(method, http).body;
    if (typeof body === "string" && body.startsWith("{")) {
      const parsed = JSON.parse(body) as JsonObject;
      if (field === "" || field === "*") Object.assign(json, parsed);
      else json[field] = { ...parsed, ...(json[field] as JsonObject | undefined) };
    }
    return fromJson(method.input, json, { registry, ignoreUnknownFields: true });
  } catch {
    return create(method.input);
  }
}

function put(json: Record<string, JsonValue>, desc: DescMessage, name: string, value: string): void {
  const [first = "", ...rest] = name.split(".");
  const field = desc.fields.find((one) => one.name === first || one.jsonName === first);
  if (field === undefined) return;
  if (rest.length > 0 && field.fieldKind === "message") {
    json[field.name] ??= {};
    put(json[field.name] as Record<string, JsonValue>, field.message, rest.join("."), value);
  } else if (field.fieldKind === "list") {
    json[field.name] = [...((json[field.name] ?? []) as JsonValue[]), value];
  } else json[field.name] = readScalar(field, value);
}

function readScalar(field: DescField, value: string): JsonValue {
  return value === "true" || value === "false" ? (field.fieldKind === "scalar" ? value === "true" : value) : value;
}

const GOOD_TIMEOUTS = {
  "grpc-timeout": ["20S", "99999999H", "30000m", "1H"],
  "connect-timeout-ms": ["20000", "9999999999"],
};
const BAD_TIMEOUTS = {
  "grpc-timeout": ["", "S", "5", "5s", "-1S", "1.5S", "123456789S", "soon", "0S", "0n", "1n"],
  "connect-timeout-ms": ["", "-1", "1.5", "10s", "99999999999", "soon", "0", "00", "+5"],
};
const WRONG_TYPES = [
  ...["text/plain", "", "application/json; charset=latin1", "APPLICATION/JSON", "application/x-www-form-urlencoded"],
  ...["application/grpc+xml", "application/grpc; charset=utf-8", "Application/gRPC+Proto", "application/grpc-web+xml"],
  ...[
    "application/connect+xml",
    "application/connect+json",
    "application/connect+proto",
    "application/proto",
    "application/grpc",
  ],
  ...["application/grpc-web", "application/json"],
];
const OTHERS: readonly Field[] = [
  ["accept", "*/*"],
  ["a-bin", "AA=="],
  ["a-bin", "%"],
  ["user-agent", "grpc-go/1.60"],
  ["x-user-agent", "connect-es/2.0"],
  ["x-grpc-web", "1"],
  ["x-request-id", "mine-1"],
  ["x-request-id", "not well formed, with spaces"],
  ["traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"],
  ["origin", ORIGIN],
  ["origin", "https://evil.example"],
  ["cookie", "a=b"],
  ["grpc-status", "0"],
  ["content-encoding", "gzip"],
  ["content-encoding", "br"],
  ["expect", "something"],
  ["x-http-method-override", "DELETE"],
  ["x-server-timeout", "0"],
  ["grpc-timeout", "0S"],
  ["connect-timeout-ms", "0"],
];
const VERSIONS = ["1", "1", "1", "1", "1", "1", "0", "2", "", "one", "1, 1"];
/** Larger than every method of the stock service takes that has no limit of its own, in bytes. */
const LARGE_BYTES = [262_139, 262_144, 262_145, 262_150, 300_000];

/** Writes a call, in which chance changes a thing or two. */
export function rpcRequest(given: RpcCase, tokens: Tokens, random: Random): WireRequest {
  const { method } = given;
  const hasEffects = method.idempotency !== MethodOptions_IdempotencyLevel.NO_SIDE_EFFECTS;
  const forms = hasEffects && random.chance(0.8) ? given.forms.filter(({ isGet }) => !isGet) : given.forms;
  const form = random.pick(forms);
  const messages = given.messages.map((message) => encode(form, method, message));
  const fields: Field[] = [...(given.fields ?? [])];
  const [, first] = chooseToken(given.authorization, tokens, random);
  if (first !== undefined) fields.push(["authorization", first]);
  const isCompressed = random.chance(0.08);
  const call = encodeCall(form, {
    messages: isLarge(random) ? [pad(form, random.pick(LARGE_BYTES))] : messages,
    isCompressed,
  });
  let { body } = call;
  let path = pathOf(method) + call.query;
  let verb = call.method;
  let own = call.fields;
  if (random.chance(0.1)) {
    fields.push([form.timeout, random.pick((random.chance(0.4) ? GOOD_TIMEOUTS : BAD_TIMEOUTS)[form.timeout])]);
  }
  if (random.chance(0.12))
    fields.push([form.accepted, random.pick(["gzip", "gzip", "identity", "br, gzip", "x", "*", "gzip;q=0"])]);
  if (random.chance(form.name.startsWith("Connect") ? 0.5 : 0.03)) {
    fields.push(["connect-protocol-version", random.pick(VERSIONS)]);
  }
  for (let more = random.chance(0.2) ? 1 + random.int(2) : 0; more > 0; more--) fields.push(random.pick(OTHERS));
  // One thing that is wrong.
  if (random.chance(0.22)) {
    switch (random.int(7)) {
      case 0:
        own = own.filter(([name]) => name !== "content-type");
        own.push(["content-type", random.pick(WRONG_TYPES)]);
        break;
      case 1:
        verb = random.pick(["GET", "PUT", "HEAD", "OPTIONS", "DELETE", "PATCH", "POST", "QUERY"]);
        break;
      case 2:
        path = random.pick([
          `${path}/`,
          `${path}x`,
          `/no.such.Service/Method`,
          path.toLowerCase(),
          `/${path}`,
          path.slice(1),
        ]);
        break;
      case 3:
        if (body !== undefined) body = mutateBytes(body, random);
        break;
      case 4:
        if (body !== undefined) {
          const sent = form.isEnveloped
            ? envelopes(messages[0] ?? Buffer.alloc(0), random)
            : Buffer.from(random.pick(["", "{", "[]", "null", "{}{}"]));
          body = form.isText ? base64(sent, random) : sent;
        }
        break;
      case 5:
        own.push([form.encoding, random.pick(["gzip", "br", "identity", "", "deflate", "gzip, gzip"])]);
        break;
      default:
        body =
          body === undefined
            ? Buffer.from("{}")
            : form.isEnveloped
              ? seal([...messages, ...messages])
              : Buffer.alloc(0);
    }
  }
  const http = random.pick(form.http);
  return {
    label: `${form.name}, ${method.methodKind}`,
    http,
    open: http === 2 && random.chance(0.02),
    method: verb,
    path,
    fields: [...own, ...fields],
    body,
    chunked: random.chance(0.1),
    rpc: findRpc(path),
    ...(given.endless && { endless: true }),
  };
}

function isLarge(random: Random): boolean {
  return random.chance(0.007);
}

function encode(form: RpcForm, { input }: DescMethod, message: Message): Buffer {
  return Buffer.from(form.isJson ? toJsonString(input, message, { registry }) : toBinary(input, message));
}

// A message of a field that no method knows.
function pad(form: RpcForm, bytes: number): Buffer {
  if (form.isJson) return Buffer.from(`{"x":"${"a".repeat(bytes - 8)}"}`);
  const head = [0xfa, 0x07];
  let length = bytes - head.length - 3;
  while (length > 127) {
    head.push((length & 127) | 128);
    length >>>= 7;
  }
  head.push(length);
  return Buffer.concat([Buffer.from(head), Buffer.alloc(bytes - head.length, 0x61)]);
}

/** The value of `authorization` of a call, and whose token it is: that of the case for most. */
export function chooseToken(
  own: string | undefined,
  tokens: Tokens,
  random: Random,
): readonly [name: string, value: string | undefined] {
  if (!random.chance(0.25)) return ["own", own];
  return random.pick<readonly [string, string | undefined]>([
    ["none", undefined],
    ["none", undefined],
    ["viewer", `Bearer ${tokens.viewer}`],
    ["viewer", `Bearer ${tokens.viewer}`],
    ["nobody", `Bearer ${tokens.nobody}`],
    ["nobody", `Bearer ${tokens.nobody}`],
    ["stranger", `Bearer ${tokens.stranger}`],
    ["expired", `Bearer ${tokens.expired}`],
    ["other audience", `Bearer ${tokens.otherAudience}`],
    ["garbage", "Bearer a.b.c"],
    ["no scheme", tokens.owner],
    ["basic", "Basic Og=="],
    ["lower case", `bearer ${tokens.viewer}`],
    ["spaces", `Bearer   ${tokens.viewer}`],
    ["empty", "Bearer "],
    ["cut", `Bearer ${tokens.owner.slice(0, -5)}`],
    ["two", `Bearer ${tokens.owner}, Bearer ${tokens.viewer}`],
  ]);
}
