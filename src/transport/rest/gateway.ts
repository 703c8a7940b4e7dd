// JSON over HTTP for every method with an HTTP rule: decodes the request, calls the pipeline and encodes its response. It
// knows no method or resource.
import type { Message } from "@bufbuild/protobuf";
import type { ConnectError } from "@connectrpc/connect";
import { invalidArgument, invalidRequest, noSuchRoute, unimplemented } from "../../kernel/errors.js";
import type { Principal } from "../../kernel/principal.js";
import type { Clock } from "../../kernel/time.js";
import type { AuthenticateCaller } from "../../pipeline/auth/authenticate.js";
import { type CallContext, StreamCall, UnaryCall } from "../../pipeline/call.js";
import type { Invoke } from "../../pipeline/invoke.js";
import type { InvokeStream } from "../../pipeline/invoke-stream.js";
import { readChunks } from "../../pipeline/list-chunks.js";
import type { MethodEntry, StreamEntry, UnaryEntry } from "../../pipeline/method-table.js";
import type { RequestRecord } from "../../telemetry/request-record.js";
import { isEmptyBody, mayHaveBody, readBody, readFormText } from "../http/body-reader.js";
import { compress, isLarge } from "../http/content-negotiation.js";
import { buildBindings, type HttpBinding } from "../http/http-binding.js";
import {
  HttpError,
  type HttpRequest,
  type HttpResponse,
  restMethodOf,
  socketAddressOf,
  toOriginForm,
} from "../http/http-message.js";
import { type CreateListEncoder, createJsonListEncoder, streamList } from "../http/list-pieces.js";
import { openRequestOf } from "../http/open-request.js";
import { findPeerAddress, type TrustedProxies } from "../http/peer-address.js";
import { beginHttpRecord, noteCaller } from "../http/request-record.js";
import { headersOf, send, sendNoContent } from "../http/send.js";
import type { ServerSpans } from "../http/server-span.js";

import { createDecoder, type Decode, type ReadBody } from "./decode.js";
import {
  createCodecs,
  createEncoder,
  createMessageEncoder,
  type Encode,
  type EncodedResponse,
  type MessageEncode,
} from "./encode.js";
import { createErrorResponder } from "./error-responder.js";
import { HttpInbound } from "./http-inbound.js";
import { createRouteTable, type RouteMatch } from "./route-table.js";
import { DEFAULT_HEARTBEAT_MS, sendStream } from "./stream.js";

/** The largest request body unless configured otherwise, in bytes, before and after decompression. */
const DEFAULT_MAX_BODY_BYTES = 4 * 1024 * 1024;

export interface GatewayOptions {
  /** The methods to serve; those without an HTTP rule are left to other protocols. */
  readonly methods: Iterable<MethodEntry>;
  readonly invoke: Invoke;
  /** Called before the body is read. */
  readonly authenticateCaller: AuthenticateCaller;
  /** Runs the methods that stream; without it there must be none with an HTTP rule. */
  readonly invokeStream?: InvokeStream | undefined;
  readonly clock: Clock;
  /** ErrorInfo's domain. */
  readonly errorDomain: string;
  /** The largest body, in bytes, whatever a method allows; 4 MiB by default. */
  readonly maxBodyBytes?: number;
  /** Whether unknown fields of bodies are rejected; by default they are ignored, as published clients expect. */
  readonly strictBody?: boolean;
  /** The proxies that are trusted to name their peers; none unless given. */
  readonly proxies?: TrustedProxies | undefined;
  /** Begins the spans of calls, where traces are on. */
  readonly spans?: ServerSpans | undefined;
  /** How often an event stream without events sends a comment, in milliseconds; 15 s by default. */
  readonly heartbeatMs?: number;
  /** Called with internal errors; the caller gets INTERNAL without their cause. */
  readonly onInternalError?: (error: ConnectError, call: CallContext | undefined) => void;
}

/** The REST front end. */
export interface Gateway {
  /**
   * Answers a request of node:http or of node:http2's compatibility layer. Never throws.
   *
   * @param record of the request; the gateway creates one if it is served without the dispatcher
   */
  handle(req: HttpRequest, res: HttpResponse, record?: RequestRecord): void;

  /** The methods that a path is served for, as in an Allow header; undefined when there are none. */
  methodsAt(path: string): string | undefined;

  /** Whether a path is served for a method. */
  serves(method: string, path: string): boolean;

  /** Every route that is served, for the OpenAPI document. */
  readonly routes: readonly HttpBinding[];
}

type Route = UnaryRoute | StreamRoute;

interface UnaryRoute {
  readonly kind: "unary";
  /** `package.Service/Method`. */
  readonly name: string;
  readonly binding: HttpBinding;
  readonly entry: UnaryEntry;
  readonly decode: Decode;
  readonly encode: Encode;
  /** Creates the encoder of a list that is sent in chunks; undefined for other methods. */
  readonly listEncoder: CreateListEncoder | undefined;
}

interface StreamRoute {
  readonly kind: "server_streaming";
  readonly name: string;
  readonly binding: HttpBinding;
  readonly entry: StreamEntry;
  readonly decode: Decode;
  readonly encode: MessageEncode;
  readonly invoke: InvokeStream;
}

const JSON_TYPE = "application/json";
const NO_BODY: ReadBody = { bytes: new Uint8Array(), contentType: undefined };

/**
 * Creates the gateway.
 *
 * @throws TypeError when an HTTP rule cannot be served or two contradict each other; see
 * {@link buildBindings} and {@link createRouteTable}.
 */
export function createGateway(options: GatewayOptions): Gateway {
  const { invoke, authenticateCaller, clock, errorDomain, onInternalError, proxies, spans } = options;
  const maxBodyBytes = options.maxBodyBytes ?? DEFAULT_MAX_BODY_BYTES;
  const heartbeatMs = options.heartbeatMs ?? DEFAULT_HEARTBEAT_MS;
  const methods = [...options.methods];
  const codecs = createCodecs(methods);
  const failures = createErrorResponder({ errorDomain, writersOf: codecs.detailsOf, onInternalError });
  const bound = methods.map((entry) => ({ entry, bindings: buildBindings(entry) }));
  const table = createRouteTable<Route>(
    bound
      .flatMap(({ bindings }) => bindings)
      .map((binding) => {
        const { method, template, name } = binding;
        return { method, template, name, target: routeOf(binding) };
      }),
  );

  return {
    routes: bound.flatMap(({ entry, bindings }) =>
      entry.published === entry.desc ? bindings : buildBindings({ ...entry, desc: entry.published }),
    ),
    handle(req, res, given) {
      const record = given ?? beginHttpRecord(req, res, findPeerAddress(socketAddressOf(req), req.headers, proxies));
      record.protocol = "rest";
      try {
        begin(req, res, record);
      } catch (error) {
        failures.answer(req, res, error, undefined);
      }
    },
    methodsAt: (path) => findUnlessMalformed(() => findMethodsAt(path)),
    serves: (method, path) => findUnlessMalformed(() => table.find(method, path)) !== undefined,
  };

  function routeOf(binding: HttpBinding): Route {
    const { entry, name } = binding;
    const { ignoreUnknownQuery = false } = entry;
    const rpcName = entry.path.slice(1);
    const { registry, writers } = codecs.of(entry);
    const decode = createDecoder(binding, { registry, strictBody: options.strictBody ?? false, ignoreUnknownQuery });
    if (entry.kind === "unary") {
      const { list } = entry;
      const encode = createEncoder(binding, writers);
      const listEncoder =
        list && (() => createJsonListEncoder(list, writers.responseField(list), String(encode({}).body)));
      return { kind: "unary", name: rpcName, binding, entry, decode, encode, listEncoder };
    }
    if (options.invokeStream === undefined || entry.kind !== "server_streaming")
      throw new TypeError(`${name} streams, but nothing was given to run streams`);
    const encode = createMessageEncoder(binding, writers);
    return { kind: "server_streaming", name: rpcName, binding, entry, decode, encode, invoke: options.invokeStream };
  }

  function begin(req: HttpRequest, res: HttpResponse, record: RequestRecord): void {
    const method = restMethodOf(req);
    if (method !== req.method && !OVERRIDES.includes(method))
      throw invalidRequest(`x-http-method-override: must be one of ${OVERRIDES.join(", ")}`);
    const target = toOriginForm(req.url ?? "");
    if (target === "*" && method === "OPTIONS") {
      sendNoContent(res, {});
      return;
    }
    if (target.charCodeAt(0) !== 47) throw invalidRequest("path: must begin with /");
    const mark = target.indexOf("?");
    const path = mark < 0 ? target : target.slice(0, mark);
    const match = table.find(method, path);
    if (match === undefined || (method === "HEAD" && isForGetAlone(match))) rejectUnknownRoute(res, method, path);
    else void serve(req, res, match, mark < 0 ? "" : target.slice(mark + 1), record);
  }

  // Methods that authenticate their callers themselves return a credential, which HEAD would issue or consume without
  // returning it.
  function isForGetAlone({ target: { entry } }: RouteMatch<Route>): boolean {
    return entry.auth.mode === "self";
  }

  function findMethodsAt(path: string): string | undefined {
    const found = table.find("GET", path);
    const allow = table.methodsAt(path);
    return found !== undefined && isForGetAlone(found) ? allow?.replace("HEAD, ", "") : allow;
  }

  // Synchronous up to `invoke` when there is no body to wait for.
  async function serve(
    req: HttpRequest,
    res: HttpResponse,
    match: RouteMatch<Route>,
    query: string,
    record: RequestRecord,
  ): Promise<void> {
    let call: UnaryCall | StreamCall | undefined;
    try {
      const { target: route, captures } = match;
      record.method = route.name;
      spans?.beginCall(record, req.headers, route.binding.template.text);
      const inbound = new HttpInbound(req, res, record);
      const { desc } = route.entry;
      call = route.kind === "unary" ? new UnaryCall(inbound, desc, clock()) : new StreamCall(inbound, desc, clock());
      const authenticated = authenticateCaller(route.entry, req.headers.authorization, record.trace);
      const principal = authenticated instanceof Promise ? await authenticated : authenticated;
      noteCaller(record, openRequestOf(req), principal);
      const maxBytes = Math.min(maxBodyBytes, route.entry.maxRequestBytes);
      const form = isForm(req, route.binding) ? await readFormText(req, maxBytes) : undefined;
      const body = form === undefined && mayHaveBody(req) ? await bodyOf(req, route.binding, maxBytes) : NO_BODY;
      const parameters = form === undefined ? query : `${query}&${form}`;
      const decode = () => route.decode(captures, parameters, body);
      if (route.kind === "unary" && call instanceof UnaryCall) {
        if (route.entry.list !== undefined) await serveList(req, res, call, principal, route, decode);
        else await sendResponse(req, res, call, route.encode(await invoke(route.entry, call, principal, decode)));
      } else if (route.kind === "server_streaming" && call instanceof StreamCall) {
        await serveStream(req, res, call, principal, route, decode());
      }
    } catch (error) {
      failures.answer(req, res, error, call);
    }
  }

  async function sendResponse(
    req: HttpRequest,
    res: HttpResponse,
    call: CallContext,
    response: EncodedResponse,
  ): Promise<void> {
    const { contentType, body: plain } = response;
    const headers = headersOf(call);
    const sent = isLarge(plain) ? await compress(plain, contentType, req.headers["accept-encoding"], headers) : plain;
    send(res, 200, headers, contentType, sent);
  }

  // A list of one chunk is sent as any other response is.
  async function serveList(
    req: HttpRequest,
    res: HttpResponse,
    call: UnaryCall,
    principal: Principal | undefined,
    { entry, encode, listEncoder }: UnaryRoute,
    decode: () => Message,
  ): Promise<void> {
    const chunks = readChunks(invoke, clock, { entry, call, principal, request: decode });
    try {
      const first = await chunks.next();
      if (first.done === true) return;
      if (call.nextCursor === undefined || listEncoder === undefined) {
        await sendResponse(req, res, call, encode(first.value));
        return;
      }
      const headers = { ...headersOf(call), "content-type": JSON_TYPE };
      const onError = (error: unknown) => failures.report(error, call);
      const isHead = req.method === "HEAD";
      await streamList({ res, isHead, headers, first: first.value, chunks, encoder: listEncoder(), onError });
    } finally {
      // Ends the list, because the number of a caller's concurrent lists is limited.
      await chunks.return();
    }
  }

  function serveStream(
    req: HttpRequest,
    res: HttpResponse,
    call: StreamCall,
    principal: Principal | undefined,
    route: StreamRoute,
    message: Message,
  ) {
    return sendStream({
      req,
      res,
      messages: route.invoke(route.entry, call, principal, message),
      encode: route.encode,
      headersOf: () => headersOf(call),
      errorTextOf: (error) => failures.textOf(error, call),
      heartbeatMs,
    });
  }

  async function bodyOf(req: HttpRequest, { body }: HttpBinding, maxBytes: number): Promise<ReadBody> {
    if (body !== "none") {
      return { bytes: await readBody(req, maxBytes), contentType: req.headers["content-type"] };
    }
    // Clients that always send JSON send `{}` for a rule without a body.
    if (await isEmptyBody(req)) return NO_BODY;
    throw invalidArgument({ field: "body", rule: "must be empty, this request takes none" });
  }

  function rejectUnknownRoute(res: HttpResponse, method: string, path: string): void {
    const allow = findMethodsAt(path);
    // A path that ends in a slash and has no route for the method names no resource, so it is 404 and not 405.
    if (allow === undefined || (path.endsWith("/") && method !== "OPTIONS")) {
      const bare = path.endsWith("/") ? path.slice(0, -1) : "";
      const hint = bare !== "" && table.methodsAt(bare) !== undefined ? `, did you mean ${bare.slice(0, 100)}?` : "";
      throw noSuchRoute(path.slice(0, 80) + hint);
    }
    if (method === "OPTIONS") {
      sendNoContent(res, { allow });
      return;
    }
    throw new HttpError(405, unimplemented(`method: ${method.slice(0, 20)} is not among ${allow}`), { allow });
  }
}

function findUnlessMalformed<T>(find: () => T): T | undefined {
  try {
    return find();
  } catch {
    return undefined;
  }
}

/** The methods that a POST may stand for. */
const OVERRIDES: readonly string[] = ["GET", "PUT", "PATCH", "DELETE"];

// A POST whose rule has no body may have its parameters in a form, as OAuth clients send them.
function isForm(req: HttpRequest, { body }: HttpBinding): boolean {
  if (body !== "none" || req.method !== "POST" || !mayHaveBody(req)) return false;
  const [type = ""] = (req.headers["content-type"] ?? "").split(";");
  return type.trim().toLowerCase() === "application/x-www-form-urlencoded";
}
