// A server with hand-made methods, and real clients for every protocol.
import { readFileSync } from "node:fs";
import { type ClientHttp2Session, connect as connectHttp2, constants, type IncomingHttpHeaders } from "node:http2";
import { connect as connectTcp, type Socket } from "node:net";
import { create } from "@bufbuild/protobuf";
import { type Client, createClient, type Transport } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport, createGrpcWebTransport } from "@connectrpc/connect-node";
import * as grpc from "@grpc/grpc-js";
import { loadSync } from "@grpc/proto-loader";
import { GroupSchema, GroupsService } from "#gen/chainguard/platform/iam/v2beta1/groups_pb.js";
import { connectErrorFrom, invalidArgument, notFound } from "../../src/kernel/errors.js";
import type { ListenAddress } from "../../src/kernel/ip-address.js";
import type { UnaryCall } from "../../src/pipeline/call.js";
import type { Handlers } from "../../src/pipeline/handlers.js";
import type { Invoke } from "../../src/pipeline/invoke.js";
import { createInvokeStream } from "../../src/pipeline/invoke-stream.js";
import { createMethodTable, MAX_REQUEST_BYTES, type MethodTable, serve } from "../../src/pipeline/method-table.js";
import type { Store } from "../../src/store/store.js";
import type { Tx } from "../../src/store/transaction.js";
import { createLogger } from "../../src/telemetry/logger.js";
import type { RestHandler } from "../../src/transport/dispatch.js";
import { readBody } from "../../src/transport/http/body-reader.js";
import { HttpError } from "../../src/transport/http/http-message.js";
import { defaultLimits, type Limits } from "../../src/transport/http/limits/limits.js";
import { bindPort } from "../../src/transport/http/listener.js";
import type { Request } from "../../src/transport/http/request.js";
import { sendBody } from "../../src/transport/http/send.js";
import { Gateway } from "../../src/transport/rest/gateway.js";
import { createServe, type Serve, type ServeOptions } from "../../src/transport/serve.js";
import { createServer, type Server, type ServerOptions } from "../../src/transport/server.js";
import { LIMIT_MS } from "../support/wait-until.js";
import { withoutBodies } from "../support/without-bodies.js";

/** The domain of all errors made here. */
export const DOMAIN = "iam.test";

/** The path of the service under test. */
export const SERVICE = "/chainguard.platform.iam.v2beta1.GroupsService";

/** Has everything that protocols escape differently. */
export const TRICKY_TEXT = "a:b, 50% of ü — done";

const tlsFolder = new URL("../support/tls/", import.meta.url);

/** The certificate of the tests, valid for localhost and 127.0.0.1. */
export const TLS = {
  cert: readFileSync(new URL("cert.pem", tlsFolder)),
  key: readFileSync(new URL("key.pem", tlsFolder)),
};

/** What the handlers saw, and what holds them up. */
export interface Probe {
  calls: UnaryCall[];
  /** Awaited by GetGroup of uid "slow". */
  gate: Promise<void>;
}

/** A running server and how to reach it. */
export interface Running {
  readonly port: number;
  readonly url: string;
  readonly probe: Probe;
  stop(graceMs?: number): Promise<void>;
}

/** The hand-made methods. */
export function createMethods(probe: Probe): MethodTable {
  const handlers: Handlers<typeof GroupsService> = {
    async getGroup({ uid }, call) {
      probe.calls.push(call);
      if (uid === "slow") await probe.gate;
      if (uid === "gone") throw notFound({ displayName: "group", type: "iam.test/Group" }, uid);
      if (uid === "tricky") throw invalidArgument({ field: "uid", subject: "", rule: TRICKY_TEXT });
      if (uid === "fails" || uid === "fails without headers") {
        if (uid === "fails") call.responseHeader.set("x-header", "h");
        call.responseTrailer.set("x-trailer", "t");
        call.responseTrailer.set("grpc-status", "0");
        throw notFound({ displayName: "group", type: "iam.test/Group" }, uid);
      }
      if (uid === "bug") throw new TypeError("secret detail");
      return create(GroupSchema, { uid, name: "core", description: call.inbound.header("authorization") ?? "" });
    },
    listGroups: ({ pageSize }) => ({ groups: Array.from({ length: pageSize }, (_, i) => ({ name: `group ${i}` })) }),
    createGroup: ({ group }, call) => {
      probe.calls.push(call);
      return { uid: "new", name: group?.name ?? "", description: String(group?.description.length ?? 0) };
    },
    updateGroup: ({ group }) => group ?? {},
    deleteGroup: () => ({}),
    lookupGroup: () => ({}),
    requestGroupAccess: () => ({}),
    checkEligibility(_request, call) {
      call.responseHeader.set("x-header", "h");
      call.responseTrailer.set("x-trailer", "t");
      call.responseHeader.set("content-type", "text/evil");
      return { eligible: true };
    },
  };
  const service = serve(GroupsService, handlers, withoutBodies(GroupsService));
  const table = createMethodTable([service]);
  return new Map(
    [...table].map(([path, entry]) => [
      path,
      { ...entry, auth: { mode: "public" as const }, maxRequestBytes: MAX_REQUEST_BYTES },
    ]),
  );
}

const invoke: Invoke = async (method, call, _principal, given) => {
  const request = typeof given === "function" ? given() : given;
  try {
    return await method.handler(request, call);
  } catch (error) {
    throw connectErrorFrom(error, DOMAIN);
  }
};

// Methods that are open to everybody ask nothing of the database.
const openToAll = { read: (unit: (tx: Tx) => unknown) => unit({} as Tx) } as Store;

// REST whose routes are all one.
function answering(serve: Serve, handle: (request: Request) => void): RestHandler {
  const none = new Gateway({ serve, methods: [] });
  return {
    handle,
    refuse: (request, cause) => none.refuse(request, cause),
    methodsAt: () => undefined,
    serves: () => false,
  };
}

function answerAsked(request: Request): void {
  const { method, url, fields } = request;
  const answer = () => {
    const body = JSON.stringify({ method, url, authorization: fields.authorization });
    sendBody(request, 200, "application/json", body);
  };
  if (fields.expect === undefined) {
    answer();
    return;
  }
  readBody(request, MAX_REQUEST_BYTES).then(answer, (fault: unknown) => {
    if (!(fault instanceof HttpError)) return;
    sendBody(request, fault.status, "application/json", JSON.stringify({ message: fault.error.message }));
  });
}

/** Options of a server under test. */
export interface StartOptions
  extends Partial<Omit<ServerOptions, "limits" | "port" | "gateway"> & Omit<ServeOptions, "limits">> {
  readonly limits?: Partial<Limits>;
  readonly listen?: ListenAddress;
  /** Serves REST; without it {@link StartOptions.answer} does. */
  readonly gateway?: RestHandler | ((serve: Serve) => RestHandler);
  /** Answers every request over REST; with what it was asked unless given. */
  readonly answer?: (request: Request) => void;
}

/** Starts a server on a free port. */
export async function startServer(options: StartOptions = {}): Promise<Running> {
  const bound = await bindPort(options.listen ?? { host: "127.0.0.1", port: 0 });
  const probe: Probe = { calls: [], gate: Promise.resolve() };
  // Tests run in the process of the server and make it late, so no call is rejected for that.
  const limits = { ...defaultLimits, maxWaitMs: 600_000, ...options.limits };
  const { logger = createLogger("silent") } = options;
  const pipeline = { store: openToAll, clock: Date.now, errorDomain: DOMAIN, onInternalError() {} };
  const create = () => {
    const serve = createServe({
      invoke,
      invokeStream: createInvokeStream(pipeline),
      authenticateCaller: () => undefined,
      ...{ clock: Date.now, errorDomain: DOMAIN },
      onInternalError: (err, requestId) => logger.error({ err, requestId }, "an answer could not be made"),
      ...options,
      limits,
    });
    const { gateway = answering(serve, options.answer ?? answerAsked) } = options;
    return createServer({
      ...{ methods: createMethods(probe), serve, errorDomain: DOMAIN, port: bound, logger },
      ...options,
      gateway: typeof gateway === "function" ? gateway(serve) : gateway,
      limits,
    });
  };
  let server: Server;
  try {
    server = create();
  } catch (error) {
    bound.close();
    throw error;
  }
  server.start();
  const { port } = bound.address;
  const url = `${options.tls ? "https" : "http"}://127.0.0.1:${port}`;
  return { port, url, probe, stop: (graceMs = 0) => server.stop(graceMs) };
}

/** Every protocol connect's clients speak, as name and transport. */
export function transports(url: string): readonly (readonly [name: string, transport: Transport])[] {
  const nodeOptions = { rejectUnauthorized: false };
  const h1 = { baseUrl: url, httpVersion: "1.1", nodeOptions } as const;
  const h2 = { baseUrl: url, httpVersion: "2", nodeOptions } as const;
  return [
    ["connect http/1.1", createConnectTransport({ ...h1, useBinaryFormat: false })],
    ["connect h2", createConnectTransport(h2)],
    ["connect h2 binary", createConnectTransport({ ...h2, useBinaryFormat: true })],
    ["connect http/1.1 GET", createConnectTransport({ ...h1, useHttpGet: true, useBinaryFormat: false })],
    ["grpc-web http/1.1", createGrpcWebTransport(h1)],
    ["grpc-web h2", createGrpcWebTransport(h2)],
    ["grpc-web h2 JSON", createGrpcWebTransport({ ...h2, useBinaryFormat: false })],
    ["grpc h2", createGrpcTransport({ baseUrl: url, nodeOptions })],
    ["grpc h2 JSON", createGrpcTransport({ baseUrl: url, nodeOptions, useBinaryFormat: false })],
  ];
}

/** A typed client. */
export function groupsClient(transport: Transport): Client<typeof GroupsService> {
  return createClient(GroupsService, transport);
}

/** The outcome of a call through grpc-js. */
export interface GrpcOutcome {
  readonly code: number;
  readonly details: string;
  readonly metadata: grpc.Metadata;
  /** The headers before the response or status. */
  readonly header: grpc.Metadata;
  readonly response?: Record<string, unknown>;
}

type GrpcMethod = (
  request: object,
  metadata: grpc.Metadata,
  options: grpc.CallOptions,
  callback: (error: grpc.ServiceError | null, response?: Record<string, unknown>) => void,
) => grpc.ClientUnaryCall;

const definition = grpc.loadPackageDefinition(
  loadSync("chainguard/platform/iam/v2beta1/groups.proto", {
    includeDirs: ["proto", "node_modules/google-proto-files"],
    keepCase: true,
  }),
);

/** A grpc-js client with its types loaded from the proto files. */
export class GrpcJs {
  readonly #client: grpc.Client & Record<string, GrpcMethod>;

  constructor(url: string, options: grpc.ClientOptions = {}) {
    const { host, protocol } = new URL(url);
    let found: unknown = definition;
    for (const name of "chainguard.platform.iam.v2beta1.GroupsService".split(".")) {
      found = (found as Record<string, unknown>)[name];
    }
    const Service = found as new (
      address: string,
      credentials: grpc.ChannelCredentials,
      options: grpc.ClientOptions,
    ) => grpc.Client & Record<string, GrpcMethod>;
    const credentials =
      protocol === "https:" ? grpc.credentials.createSsl(TLS.cert) : grpc.credentials.createInsecure();
    // It would send the address as server name, which RFC 6066 forbids and Node 26 refuses.
    const named = protocol === "https:" ? { "grpc.ssl_target_name_override": "localhost" } : {};
    this.#client = new Service(host, credentials, { ...named, ...options });
  }

  call(method: string, request: object, metadata = new grpc.Metadata(), options: grpc.CallOptions = {}) {
    return new Promise<GrpcOutcome>((resolve) => {
      const call: GrpcMethod | undefined = this.#client[method];
      if (call === undefined) throw new TypeError(`no method ${method}`);
      let header = new grpc.Metadata();
      const deadline = Date.now() + LIMIT_MS;
      const started = call.call(this.#client, request, metadata, { deadline, ...options }, (error, response) => {
        if (error) resolve({ code: error.code, details: error.details, metadata: error.metadata, header });
        else resolve({ code: 0, details: "", metadata: new grpc.Metadata(), header, ...(response && { response }) });
      });
      started.on("metadata", (fields: grpc.Metadata) => {
        header = fields;
      });
    });
  }

  close(): void {
    this.#client.close();
  }
}

/** What a raw HTTP/2 request got. */
export interface RawResponse {
  readonly headers: IncomingHttpHeaders;
  readonly trailers: IncomingHttpHeaders;
  readonly body: Buffer;
  /** The code of the RST_STREAM that ended it; 0 when it ended by itself. */
  readonly rstCode: number;
}

/** Opens an HTTP/2 session whose errors are of no interest. */
export function openHttp2(url: string): ClientHttp2Session {
  const session = connectHttp2(url, { rejectUnauthorized: false });
  session.on("error", () => {});
  return session;
}

/** One raw HTTP/2 request; without `body` the request ends with its headers. */
export function rawHttp2(
  session: ClientHttp2Session,
  headers: Record<string, string | string[]>,
  body?: Buffer | readonly Buffer[],
  end = true,
): Promise<RawResponse> {
  return new Promise((resolve) => {
    const stream = session.request({ ":method": "POST", ...headers }, { endStream: body === undefined && end });
    let head: IncomingHttpHeaders = {};
    let trailers: IncomingHttpHeaders = {};
    const chunks: Buffer[] = [];
    stream.on("error", () => {});
    stream.on("response", (fields) => {
      head = fields;
    });
    stream.on("trailers", (fields) => {
      trailers = fields;
    });
    stream.on("data", (chunk: Buffer) => chunks.push(chunk));
    stream.on("close", () => {
      resolve({ headers: head, trailers, body: Buffer.concat(chunks), rstCode: stream.rstCode ?? 0 });
    });
    stream.on("end", () => {
      if (!end) stream.close(constants.NGHTTP2_CANCEL);
    });
    for (const part of body === undefined ? [] : Array.isArray(body) ? body : [body]) stream.write(part);
    if (body !== undefined && end) stream.end();
  });
}

/** Sends bytes over TCP and reads until the server closes, or until `enough` says so. */
export function rawTcp(port: number, bytes: string | Buffer, enough: (text: string) => boolean = () => false) {
  return new Promise<string>((resolve, reject) => {
    let text = "";
    const socket: Socket = connectTcp(port, "127.0.0.1", () => socket.write(bytes));
    socket.on("data", (chunk) => {
      text += chunk.toString("latin1");
      if (enough(text)) socket.destroy();
    });
    // Whether a cut connection ends or is reset depends on what of it had been read by then.
    socket.on("error", (error: NodeJS.ErrnoException) => {
      if (error.code !== "ECONNRESET") reject(error);
    });
    socket.on("close", () => resolve(text));
  });
}

/** A gRPC message frame. */
export function frame(message: Uint8Array, flag = 0): Buffer {
  const bytes = Buffer.alloc(5 + message.length);
  bytes[0] = flag;
  bytes.writeUInt32BE(message.length, 1);
  bytes.set(message, 5);
  return bytes;
}

/** What an HTTP/2 client sends first, before any request. */
export const HTTP2_START = Buffer.concat([Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), http2Frame(4, 0, 0)]);

/** Frame types, flags and a setting of HTTP/2. */
export const DATA = 0;
export const HEADERS = 1;
export const PRIORITY = 2;
export const RST_STREAM = 3;
export const SETTINGS = 4;
export const WINDOW_UPDATE = 8;
export const CONTINUATION = 9;
export const INITIAL_WINDOW_SIZE = 4;
export const END_STREAM = 1;
export const ACK = 1;

/** One HTTP/2 frame, for what no client would send. */
export function http2Frame(type: number, flags: number, streamId: number, payload: Uint8Array = new Uint8Array()) {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head[3] = type;
  head[4] = flags;
  head.writeUInt32BE(streamId, 5);
  return Buffer.concat([head, payload]);
}

/** The HEADERS frame of a POST without END_STREAM; names and values must be short. */
export function headersFrame(streamId: number, path: string, fields: readonly (readonly [string, string])[]): Buffer {
  const literal = ([name, value]: readonly [string, string]) =>
    Buffer.concat([Buffer.from([0, name.length]), Buffer.from(name), Buffer.from([value.length]), Buffer.from(value)]);
  const all = [[":path", path] as const, [":authority", "a"] as const, ...fields];
  // 0x83 is `:method: POST` and 0x86 `:scheme: http` of the static table.
  return http2Frame(1, 4, streamId, Buffer.concat([Buffer.from([0x83, 0x86]), ...all.map(literal)]));
}
