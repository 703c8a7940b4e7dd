// JSON over HTTP for every unary method that has an HTTP rule. Bytes become the
// method's typed request, `invoke` answers it, and the answer becomes bytes; of
// what methods do nothing is known here.
import type { Message } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import type { Clock } from "../kernel/clock.js";
import {
  ApiError,
  connectErrorFrom,
  invalidArgument,
  malformedRequest,
  noSuchRoute,
  unimplemented,
} from "../kernel/errors.js";
import { Call } from "../rpc/call.js";
import type { Invoke } from "../rpc/invoke.js";
import type { MethodEntry } from "../rpc/method-table.js";
import { bindingsOf, type HttpBinding } from "./binding.js";
import { discardRest, type HttpRequest, type HttpResponse, isEmptyBody, mayHaveBody, readBody } from "./body.js";
import { createDecode, type Decode, type ReadBody } from "./decode.js";
import { createEncode, type Encode } from "./encode.js";
import { errorText, httpStatusOf, retryAfterOf } from "./error-json.js";
import { CallerGone, HttpFault } from "./http-fault.js";
import { type AddressOf, HttpInbound, socketAddressOf, timeoutMsOf } from "./http-inbound.js";
import { createJsonWriters } from "./json-writer.js";
import { createRouteTable, type RouteMatch } from "./route-table.js";
import { copyHeaders, headersOf, type ResponseHeaders, send, sendNoContent } from "./send.js";
import { createTypeRegistry } from "./type-registry.js";

/** The largest request body unless configured otherwise, in bytes, before and after decompression. */
export const DEFAULT_MAX_BODY_BYTES = 4 * 1024 * 1024;

/** What {@link createGateway} is made of. */
export interface GatewayOptions {
  /** The methods to serve; those without an HTTP rule are left to other protocols. */
  readonly methods: Iterable<MethodEntry>;
  readonly invoke: Invoke;
  readonly clock: Clock;
  /** ErrorInfo's domain. */
  readonly errorDomain: string;
  /** The largest body, in bytes; 4 MiB by default. */
  readonly maxBodyBytes?: number;
  /** Refuse unknown fields of bodies; by default they are passed over, as published clients expect. */
  readonly strictBody?: boolean;
  /** The methods that pass over unknown query parameters; by default none does. */
  readonly allowUnknownQuery?: (method: MethodEntry) => boolean;
  /** The address a request comes from; by default that of its socket. */
  readonly addressOf?: AddressOf;
  /** Told of errors that arise here and of which the caller learns nothing. */
  readonly onInternalError?: (error: ConnectError, call: Call | undefined) => void;
}

/** The REST front end. */
export interface Gateway {
  /** Answers a request of node:http or of node:http2's compatibility layer. Never throws. */
  handle(req: HttpRequest, res: HttpResponse): void;

  /** Every route that is served. */
  readonly routes: readonly HttpBinding[];
}

interface Route {
  readonly binding: HttpBinding;
  readonly decode: Decode;
  readonly encode: Encode;
}

const NO_BODY: ReadBody = { bytes: new Uint8Array(), contentType: undefined };

/**
 * Creates the gateway.
 *
 * @throws TypeError when an HTTP rule cannot be served or two contradict each other; see
 * {@link bindingsOf} and {@link createRouteTable}.
 */
export function createGateway(options: GatewayOptions): Gateway {
  const { invoke, clock, errorDomain, onInternalError } = options;
  const maxBodyBytes = options.maxBodyBytes ?? DEFAULT_MAX_BODY_BYTES;
  const addressOf = options.addressOf ?? socketAddressOf;
  const methods = [...options.methods];
  const registry = createTypeRegistry(methods);
  const writers = createJsonWriters(registry);
  const routes = methods.flatMap(bindingsOf);
  const table = createRouteTable<Route>(
    routes.map((binding) => {
      const ignoreUnknownQuery = options.allowUnknownQuery?.(binding.entry) ?? false;
      const decode = createDecode(binding, { registry, strictBody: options.strictBody ?? false, ignoreUnknownQuery });
      const target: Route = { binding, decode, encode: createEncode(binding, writers) };
      return { method: binding.method, template: binding.template, name: binding.name, target };
    }),
  );

  return {
    routes,
    handle(req, res) {
      try {
        begin(req, res);
      } catch (error) {
        fail(req, res, error, undefined);
      }
    },
  };

  function begin(req: HttpRequest, res: HttpResponse): void {
    const method = req.method ?? "";
    const target = originForm(req.url ?? "");
    if (target === "*" && method === "OPTIONS") {
      sendNoContent(res, {});
      return;
    }
    if (target.charCodeAt(0) !== 47) throw malformedRequest("path: must begin with /");
    const mark = target.indexOf("?");
    const path = mark < 0 ? target : target.slice(0, mark);
    const match = table.find(method, path);
    if (match === undefined) noRoute(req, res, method, path);
    else void serve(req, res, match, mark < 0 ? "" : target.slice(mark + 1));
  }

  // Runs without a break from here to `invoke` when there is no body to wait for.
  async function serve(req: HttpRequest, res: HttpResponse, match: RouteMatch<Route>, query: string): Promise<void> {
    let call: Call | undefined;
    try {
      const { target: route, captures } = match;
      const { entry } = route.binding;
      const body = mayHaveBody(req) ? await bodyOf(req, route.binding) : NO_BODY;
      const message: Message = route.decode(captures, query, body);
      call = new Call(new HttpInbound(req, res, timeoutOf(req), addressOf), entry.desc, clock());
      const answer = await invoke(entry, call, message);
      const { contentType, body: bytes } = route.encode(answer);
      send(res, 200, headersOf(call), contentType, bytes);
    } catch (error) {
      fail(req, res, error, call);
    }
  }

  async function bodyOf(req: HttpRequest, { body, method }: HttpBinding): Promise<ReadBody> {
    if (body !== "none") {
      return { bytes: await readBody(req, maxBodyBytes), contentType: req.headers["content-type"] };
    }
    // Clients that always send JSON send `{}` when they have nothing to say.
    const bare = method === "GET" || method === "DELETE" || req.method === "GET" || req.method === "HEAD";
    if (await isEmptyBody(req, !bare)) return NO_BODY;
    throw invalidArgument({ field: "body", description: "body must be empty, this request takes none" });
  }

  function noRoute(req: HttpRequest, res: HttpResponse, method: string, path: string): void {
    const allow = table.allowed(path);
    if (allow === undefined) {
      const bare = path.endsWith("/") ? path.slice(0, -1) : "";
      const hint = bare !== "" && table.allowed(bare) !== undefined ? `, did you mean ${bare.slice(0, 100)}?` : "";
      throw noSuchRoute(path.slice(0, 80) + hint);
    }
    if (method === "OPTIONS") {
      if (mayHaveBody(req)) discardRest(req, res);
      sendNoContent(res, { allow });
      return;
    }
    throw new HttpFault(405, unimplemented(`method: ${method.slice(0, 20)} is not among ${allow}`), { allow });
  }

  function fail(req: HttpRequest, res: HttpResponse, error: unknown, call: Call | undefined): void {
    if (error instanceof CallerGone) return;
    try {
      const fault = error instanceof HttpFault ? error : undefined;
      const seen = connectErrorFrom(fault?.error ?? error, errorDomain);
      const known = fault !== undefined || error instanceof ApiError || error instanceof ConnectError;
      if (!known) onInternalError?.(seen, call);
      const headers: ResponseHeaders = call === undefined ? {} : headersOf(call);
      copyHeaders(seen.metadata, headers);
      Object.assign(headers, fault?.headers);
      if (seen.code === Code.Unauthenticated) {
        const sent = req.headers.authorization !== undefined;
        headers["www-authenticate"] = `Bearer realm="arbor"${sent ? ', error="invalid_token"' : ""}`;
      }
      const retryAfter = retryAfterOf(seen);
      if (retryAfter !== undefined) headers["retry-after"] = retryAfter;
      if (mayHaveBody(req)) discardRest(req, res);
      const status = fault?.status ?? httpStatusOf(seen.code);
      send(res, status, headers, "application/json", errorText(seen, writers));
    } catch {
      // Not even the error could be sent: the connection is all there is left to end.
      res.destroy();
    }
  }
}

// Absolute-form targets, which clients send to proxies, lose their origin (RFC 9112, section 3.2.2).
// Not by `new URL`: it would quietly rewrite dots and backslashes.
function originForm(target: string): string {
  const code = target.charCodeAt(0);
  if (code === 47) return target;
  const authority = /^https?:\/\/[^/?#]+/i.exec(target.slice(0, 300))?.[0];
  if (authority === undefined) return target;
  const rest = target.slice(authority.length);
  return rest.startsWith("/") ? rest : `/${rest}`;
}

function timeoutOf(req: HttpRequest): number | undefined {
  const header = req.headers["grpc-timeout"];
  if (header === undefined) return undefined;
  const ms = timeoutMsOf(String(header));
  if (Number.isNaN(ms)) throw malformedRequest("grpc-timeout: must be up to 8 digits and one of H, M, S, m, u, n");
  return ms;
}
