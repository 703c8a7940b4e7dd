// Sends one row of the table of header fields and streams in one form.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import type { ClientHttp2Session, ClientHttp2Stream, IncomingHttpHeaders } from "node:http2";
import {
  create,
  type DescMethod,
  type JsonObject,
  type JsonValue,
  type MessageInitShape,
  toBinary,
  toJsonString,
} from "@bufbuild/protobuf";
import { AuditService } from "#gen/arbor/audit/v1/audit_pb.js";
import { Auth } from "#gen/chainguard/platform/auth/auth_pb.js";
import { GroupsService } from "#gen/chainguard/platform/iam/v2beta1/groups_pb.js";
import { SecurityTokenService } from "#gen/chainguard/platform/oidc/oidc_pb.js";
import { ServerReflection } from "#gen/grpc/reflection/v1/reflection_pb.js";
import { changeInvite, invite, register } from "../../issuer/auth-world.js";
import { ask } from "../../issuer/sts/ask.js";
import { type ExchangeWorld, startExchangeWorld } from "../../issuer/sts/exchange-world.js";
import { type OtlpCollector, startOtlpCollector } from "../../support/otlp-collector.js";
import { createReader } from "../../support/read-response.js";
import { encodeCall, type Field, streamForms, unaryForms } from "../../support/rpc-forms.js";
import { withVariables } from "../../support/variables.js";
import { waitUntil } from "../../support/wait-until.js";
import { openHttp2, type RawResponse, rawHttp2 } from "../../transport/harness.js";
import { codeName } from "../wire.js";
import { formName, type WireExpected, type WireForm, type WireKind, type WireRule, type WireSent } from "./wire.js";

/** The service with what the rows need. */
export interface WireWorld {
  readonly world: ExchangeWorld;
  readonly collector: OtlpCollector;
  readonly session: ClientHttp2Session;
  /** An identity whose issuer cannot be reached, and a token of that issuer. */
  readonly unreachable: { readonly identity: string; readonly token: string };
  /** How streams ended over each form when another service stopped. */
  stopped: Promise<ReadonlyMap<string, WireAnswer>> | undefined;
  stop(): Promise<void>;
}

const UNREACHABLE = "http://127.0.0.1:9";
/** So many wrong codes are more than the limit. */
const WRONG_CODES = 11;

/** Starts it, with traces. */
export async function startWireWorld(): Promise<WireWorld> {
  const collector = await startOtlpCollector();
  const variables = { OTEL_EXPORTER_OTLP_ENDPOINT: collector.endpoint, OTEL_BSP_SCHEDULE_DELAY: "50" };
  const world = await withVariables(variables, () => startExchangeWorld({ trustedIssuers: UNREACHABLE }));
  const identity = await world.assumable({ claimMatch: { issuer: UNREACHABLE, subject: "far" } });
  const session = openHttp2(world.url);
  return {
    world,
    collector,
    session,
    unreachable: { identity, token: world.token({ iss: UNREACHABLE, sub: "far" }) },
    stopped: undefined,
    async stop() {
      session.destroy();
      await world.stop();
      await collector.stop();
    },
  };
}

/** The forms that show a row of this kind. */
export function formsOf({ over = () => true }: WireRule, kind: WireKind): readonly WireForm[] {
  const rest: readonly WireForm[] = kind === "upload" ? [] : ["REST"];
  const all = [...rest, ...(kind === "unary" ? unaryForms : streamForms)].filter(
    // gRPC-Web as text takes no stream.
    (form) => kind !== "upload" || form === "REST" || form.isText !== true,
  );
  const names = all.map(formName);
  // Some forms have several content types.
  return all.filter((form, i) => names.indexOf(formName(form)) === i && over(form));
}

interface Call {
  readonly method: DescMethod;
  readonly init: object;
  readonly token: string | undefined;
  /** Method and path over REST. */
  readonly rest: string;
}

/**
 * Runs a row in one form.
 *
 * @throws AssertionError when the response is not as the row says
 */
export async function runWireRule(rule: WireRule, kind: WireKind, form: WireForm, wire: WireWorld): Promise<void> {
  const { sent, expect } = rule;
  if (sent.cause === "stop") {
    wire.stopped ??= stopWithStreams(formsOf(rule, kind));
    const stopped = await wire.stopped;
    assertResponse(stopped.get(formName(form)) as WireAnswer, expect);
    return;
  }
  const call = await callOf(sent, kind, wire);
  const requestId = randomUUID();
  const fields: Field[] = [["x-request-id", requestId]];
  const token = sent.as === "nobody" ? undefined : sent.as === "garbled" ? "no.such.token" : call.token;
  if (token !== undefined) fields.push(["authorization", `Bearer ${token}`]);
  if (sent.timeout !== undefined) fields.push(timeoutField(form, sent.timeout));
  if (sent.version !== undefined) fields.push(["connect-protocol-version", sent.version]);
  const response = await send(form, call, fields, sent.bytes, wire.session);
  assertResponse(response, expect);
  if (expect.span) await assertSpan(wire, requestId, call.method);
}

async function callOf({ cause }: WireSent, kind: WireKind, { world, unreachable }: WireWorld): Promise<Call> {
  const { url, root, owner } = world;
  if (cause === "unreachable issuer") {
    const { identity, token } = unreachable;
    const rest = `POST /sts/exchange?aud=${url}&identity=${identity}`;
    return { method: SecurityTokenService.method.exchange, init: { aud: [url], identity }, token, rest };
  }
  if (cause === "wrong codes") {
    const code = changeInvite(await invite(world), { sec: "0".repeat(32) });
    const token = world.idToken({ sub: "late" });
    for (let n = 0; n < WRONG_CODES; n++) await register(world, token, { code });
    return { method: Auth.method.register, init: { code }, token, rest: "POST /auth/v1/register" };
  }
  const { token } = owner;
  switch (kind) {
    case "unary":
      return {
        method: GroupsService.method.getGroup,
        init: { uid: root },
        token,
        rest: `GET /iam/v2beta1/groups/${root}`,
      };
    case "stream":
      return tailEvents(root, token);
    default:
      return { method: ServerReflection.method.serverReflectionInfo, init: {}, token: undefined, rest: "" };
  }
}

function tailEvents(scope: string, token: string): Call {
  return {
    method: AuditService.method.tailEvents,
    init: { scope },
    token,
    rest: `GET /audit/v1/events:tail?scope=${scope}`,
  };
}

function timeoutField(form: WireForm, timeout: "malformed" | "zero"): Field {
  if (timeout === "malformed") return [form === "REST" ? "grpc-timeout" : form.timeout, "soon"];
  return form === "REST" || form.timeout === "grpc-timeout" ? ["grpc-timeout", "0S"] : ["connect-timeout-ms", "0"];
}

/** A response of any form. */
interface WireAnswer {
  /** The name of the code; `HTTP 400` where it is not in the form of the call. */
  readonly code: string;
  readonly message: string;
  /** The types of the details. */
  readonly details: readonly string[];
  readonly status: number | undefined;
  readonly fields: JsonObject;
}

async function send(
  form: WireForm,
  call: Call,
  fields: readonly Field[],
  bytes: number | undefined,
  session: ClientHttp2Session,
): Promise<WireAnswer> {
  const { headers, body } = encode(form, call, fields, bytes);
  return readAnswer(form, call, await rawHttp2(session, headers, body));
}

function encode(form: WireForm, { method, init, rest }: Call, fields: readonly Field[], bytes?: number) {
  const { verb, path, own, body } = form === "REST" ? restCall(rest, init) : rpcCall(form, method, init, bytes);
  return { headers: { ":method": verb, ":path": path, ...Object.fromEntries([...own, ...fields]) }, body };
}

function readAnswer(form: WireForm, { method }: Call, { headers, trailers, body }: RawResponse): WireAnswer {
  const toFields = (given: object): Field[] =>
    Object.entries(given).flatMap(([name, value]): Field[] => (name.startsWith(":") ? [] : [[name, String(value)]]));
  const response = {
    end: "",
    connection: "",
    interim: [],
    status: Number(headers[":status"]),
    fields: toFields(headers),
    body,
    trailers: Object.keys(trailers).length > 0 ? toFields(trailers) : undefined,
  };
  return toAnswer(form, createReader([])({ method: "POST", rpc: method }, response));
}

// Opens a stream in each form, and stops the service when all of them have begun.
async function stopWithStreams(forms: readonly WireForm[]): Promise<ReadonlyMap<string, WireAnswer>> {
  const { world, session, collector } = await startWireWorld();
  const { token, group: scope } = await world.harness.organisation("stopped.example");
  const call = tailEvents(scope, token);
  const open = forms.map((form) => {
    const { headers, body } = encode(form, call, [["authorization", `Bearer ${token}`]]);
    const stream = session.request(headers, { endStream: body === undefined });
    if (body !== undefined) stream.end(body);
    return { form, stream, ended: readStream(stream) };
  });
  await Promise.all(open.map(({ stream }) => once(stream, "data")));
  await world.stop();
  const answers = await Promise.all(
    open.map(async ({ form, ended }) => [formName(form), readAnswer(form, call, await ended)] as const),
  );
  session.destroy();
  await collector.stop();
  return new Map(answers);
}

function readStream(stream: ClientHttp2Stream): Promise<RawResponse> {
  let headers: IncomingHttpHeaders = {};
  let trailers: IncomingHttpHeaders = {};
  const chunks: Buffer[] = [];
  stream.on("response", (fields) => (headers = fields));
  stream.on("trailers", (fields) => (trailers = fields));
  stream.on("data", (chunk: Buffer) => chunks.push(chunk));
  // A stream that is cut says so by a reset.
  stream.on("error", () => {});
  return new Promise((resolve) =>
    stream.on("close", () => resolve({ headers, trailers, body: Buffer.concat(chunks), rstCode: stream.rstCode ?? 0 })),
  );
}

function restCall(line: string, init: object) {
  const [verb = "", path = ""] = line.split(" ");
  const hasBody = verb === "POST" && path.endsWith("/register");
  const own: Field[] = hasBody ? [["content-type", "application/json"]] : [];
  return { verb, path, own, body: hasBody ? Buffer.from(JSON.stringify(init)) : undefined };
}

function rpcCall(form: Exclude<WireForm, "REST">, method: DescMethod, init: object, bytes: number | undefined) {
  const message = create(method.input, init as MessageInitShape<DescMethod["input"]>);
  const plain = form.isJson
    ? Buffer.from(toJsonString(method.input, message))
    : Buffer.from(toBinary(method.input, message));
  const call = encodeCall(form, { messages: [bytes === undefined ? plain : Buffer.alloc(bytes, " ")] });
  const path = `/${method.parent.typeName}/${method.name}${call.query}`;
  return { verb: call.method, path, own: call.fields, body: call.body };
}

function toAnswer(form: WireForm, { status, fields, grpc, body }: JsonObject): WireAnswer {
  const http = { status: status as number | undefined, fields: fields as JsonObject };
  const error = findError(form, grpc as JsonObject | undefined, body);
  if (error === undefined) return { code: `HTTP ${status}`, message: JSON.stringify(body), details: [], ...http };
  const { code, message, details } = error;
  const types = ((details ?? []) as JsonObject[]).map((detail) => String(detail.type ?? detail["@type"]));
  const name = typeof code === "number" ? codeName(code) : String(code).toUpperCase();
  return {
    code: name,
    message: String(message),
    details: types.map((type) => type.slice(type.lastIndexOf(".") + 1)),
    ...http,
  };
}

// The error where clients of the form look for it.
function findError(form: WireForm, grpc: JsonObject | undefined, body: JsonValue | undefined): JsonObject | undefined {
  // A stream over REST ends with a line for its error.
  if (form === "REST" && Array.isArray(body))
    return (body as JsonObject[]).find((line) => line.error)?.error as JsonObject | undefined;
  const object = typeof body === "object" && body !== null && !Array.isArray(body) ? body : undefined;
  if (form === "REST" || !form.isEnveloped) return object !== undefined && "code" in object ? object : undefined;
  if (form.timeout === "connect-timeout-ms")
    return (object?.ending as JsonObject | undefined)?.error as JsonObject | undefined;
  if (grpc === undefined) return undefined;
  const status = grpc["grpc-status-details-bin"] as JsonObject | undefined;
  // The status is told twice; clients read either.
  assert.equal(String(status?.code), grpc["grpc-status"]);
  assert.equal(encodeURI(String(status?.message)), encodeURI(decodeURIComponent(String(grpc["grpc-message"]))));
  return status;
}

function assertResponse(response: WireAnswer, { code, message, status, fields = {}, details }: WireExpected): void {
  const text = JSON.stringify(response);
  assert.equal(response.code, code, text);
  if (message !== undefined) assert.match(response.message, message);
  if (status !== undefined) assert.equal(response.status, status, text);
  for (const [name, pattern] of Object.entries(fields))
    assert.match(String(response.fields[name]), pattern, `${name} is ${response.fields[name]}`);
  if (details !== undefined) assert.deepEqual(response.details, ["ErrorInfo", ...details]);
}

// Spans are exported in the order in which they end, so the span of a later call shows that there is none.
async function assertSpan(
  { collector, world }: WireWorld,
  requestId: string,
  { parent, name }: DescMethod,
): Promise<void> {
  const find = (id: string) => collector.spans.find(({ attributes }) => attributes["arbor.request_id"] === id);
  const later = randomUUID();
  await ask(world.url, `/iam/v2beta1/groups/${world.root}`, { headers: { "x-request-id": later } });
  await waitUntil(() => find(later));
  assert.equal(find(requestId)?.name, `${parent.typeName}/${name}`, "there is no span of the call");
}
