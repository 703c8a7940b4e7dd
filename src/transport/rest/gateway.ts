// JSON over HTTP for every method with an HTTP rule: finds the route of a request. It knows no method or resource.
import { invalidRequest, noSuchRoute, unimplemented } from "../../kernel/errors.js";
import type { MethodEntry } from "../../pipeline/method-table.js";
import { buildBindings, type HttpBinding } from "../http/http-binding.js";
import { HttpError, toOriginForm } from "../http/http-message.js";
import { createJsonListEncoder } from "../http/list-pieces.js";
import type { Request } from "../http/request.js";
import { sendNoContent } from "../http/send.js";
import { Rest, RestErrors } from "../protocol/rest.js";
import type { RestRoute } from "../protocol/rest-route.js";
import type { Serve } from "../serve.js";
import { createDecoder } from "./decode.js";
import { type Codecs, createCodecs, createEncoder, createMessageEncoder } from "./encode.js";
import { createRouteTable, type RouteMatch, type RouteTable } from "./route-table.js";

/** The largest request body unless configured otherwise, in bytes, before and after decompression. */
const DEFAULT_MAX_BODY_BYTES = 4 * 1024 * 1024;
/** How often an event stream without events sends a comment, in milliseconds. */
export const DEFAULT_HEARTBEAT_MS = 15_000;

export interface GatewayOptions {
  /** The methods to serve; those without an HTTP rule are left to other protocols. */
  readonly methods: Iterable<MethodEntry>;
  readonly serve: Serve;
  /** The largest body, in bytes, whatever a method allows; 4 MiB by default. */
  readonly maxBodyBytes?: number;
  /** Whether unknown fields of bodies are rejected; by default they are ignored, as published clients expect. */
  readonly strictBody?: boolean;
  /** How often an event stream without events sends a comment, in milliseconds; 15 s by default. */
  readonly heartbeatMs?: number;
  /** Answers a request for a path that is not served with a page, if a browser asks. Returns whether it did. */
  readonly sendNotFound?: (request: Request, path: string) => boolean;
}

interface Route extends RestRoute {
  /** `package.Service/Method`. */
  readonly name: string;
}

/** The REST front end. */
export class Gateway {
  /** Every route that is served, for the OpenAPI document. */
  readonly routes: readonly HttpBinding[];
  readonly #serve: Serve;
  readonly #table: RouteTable<Route>;
  readonly #errors: RestErrors;
  readonly #sendNotFound: GatewayOptions["sendNotFound"];

  /**
   * @throws TypeError when an HTTP rule cannot be served or two contradict each other; see {@link buildBindings} and
   * {@link createRouteTable}
   */
  constructor(options: GatewayOptions) {
    const methods = [...options.methods];
    const codecs = createCodecs(methods);
    this.#serve = options.serve;
    this.#sendNotFound = options.sendNotFound;
    this.#errors = new RestErrors(codecs.own.writers.details);
    const bound = methods.map((entry) => ({ entry, bindings: buildBindings(entry) }));
    this.#table = createRouteTable<Route>(
      bound
        .flatMap(({ bindings }) => bindings)
        .map((binding) => {
          const { method, template, name } = binding;
          return { method, template, name, target: buildRoute(binding, codecs, options) };
        }),
    );
    this.routes = bound.flatMap(({ entry, bindings }) =>
      entry.published === entry.desc ? bindings : buildBindings({ ...entry, desc: entry.published }),
    );
  }

  /** Answers a request. Never throws. */
  handle(request: Request): void {
    request.record.protocol = "rest";
    try {
      this.#begin(request);
    } catch (error) {
      this.refuse(request, error);
    }
  }

  /** Answers with an error, before anything of a request is read. Never throws. */
  refuse(request: Request, cause: unknown): void {
    this.#serve.refuse(request, this.#errors, cause);
  }

  /** The methods that a path is served for, as in an Allow header; undefined when there are none. */
  methodsAt(path: string): string | undefined {
    return findUnlessMalformed(() => this.#findMethodsAt(path));
  }

  /** Whether a path is served for the method of a request. */
  serves(request: Request, path: string): boolean {
    return findUnlessMalformed(() => this.#table.find(methodOf(request), path)) !== undefined;
  }

  #begin(request: Request): void {
    const method = methodOf(request);
    if (method !== request.method && !OVERRIDES.includes(method))
      throw invalidRequest(`x-http-method-override: must be one of ${OVERRIDES.join(", ")}`);
    const target = toOriginForm(request.url);
    if (target === "*" && method === "OPTIONS") {
      sendNoContent(request, {});
      return;
    }
    if (target.charCodeAt(0) !== 47) throw invalidRequest("path: must begin with /");
    const mark = target.indexOf("?");
    const path = mark < 0 ? target : target.slice(0, mark);
    const match = this.#table.find(method, path);
    if (match === undefined || (method === "HEAD" && isForGetAlone(match))) {
      this.#rejectUnknownRoute(request, method, path);
      return;
    }
    const { target: route, captures } = match;
    request.record.method = route.name;
    const { entry, template } = route.binding;
    const call = new Rest(route, captures, mark < 0 ? "" : target.slice(mark + 1));
    void this.#serve.serve(request, call, entry, template.text);
  }

  #findMethodsAt(path: string): string | undefined {
    const found = this.#table.find("GET", path);
    const allow = this.#table.methodsAt(path);
    return found !== undefined && isForGetAlone(found) ? allow?.replace("HEAD, ", "") : allow;
  }

  #rejectUnknownRoute(request: Request, method: string, path: string): void {
    const allow = this.#findMethodsAt(path);
    // A path that ends in a slash and has no route for the method names no resource, so it is 404 and not 405.
    if (allow === undefined || (path.endsWith("/") && method !== "OPTIONS")) {
      if (this.#sendNotFound?.(request, path)) return;
      const bare = path.endsWith("/") ? path.slice(0, -1) : "";
      const isNear = bare !== "" && this.#table.methodsAt(bare) !== undefined;
      const hint = isNear ? `, did you mean ${bare.slice(0, 100)}?` : "";
      throw noSuchRoute(path.slice(0, 80) + hint);
    }
    if (method === "OPTIONS") {
      sendNoContent(request, { allow });
      return;
    }
    throw new HttpError(405, unimplemented(`method: ${method.slice(0, 20)} is not among ${allow}`), { allow });
  }
}

function buildRoute(binding: HttpBinding, codecs: Codecs, options: GatewayOptions): Route {
  const { entry } = binding;
  const { ignoreUnknownQuery = false, maxRequestBytes } = entry;
  const { registry, writers } = codecs.of(entry);
  const encode = createEncoder(binding, writers);
  const list = entry.kind === "unary" ? entry.list : undefined;
  return {
    name: entry.path.slice(1),
    binding,
    maxBytes: Math.min(options.maxBodyBytes ?? DEFAULT_MAX_BODY_BYTES, maxRequestBytes),
    heartbeatMs: options.heartbeatMs ?? DEFAULT_HEARTBEAT_MS,
    decode: createDecoder(binding, { registry, strictBody: options.strictBody ?? false, ignoreUnknownQuery }),
    encode,
    encodeMessage: createMessageEncoder(binding, writers),
    createListEncoder:
      list && (() => createJsonListEncoder(list, writers.responseField(list), String(encode({}).body))),
    details: writers.details,
  };
}

// Methods that authenticate their callers themselves return a credential, which HEAD would issue or consume without
// returning it.
function isForGetAlone({ target }: RouteMatch<Route>): boolean {
  return target.binding.entry.auth.mode === "self";
}

/**
 * The method of a request over REST. A POST may stand for another one, in `X-HTTP-Method-Override`: some networks let only
 * GET and POST through, and some queries are too long for a URL.
 */
function methodOf({ method, fields }: Request): string {
  const override = method === "POST" ? fields["x-http-method-override"] : undefined;
  return override === undefined ? method : String(override).toUpperCase();
}

/** The methods that a POST may stand for. */
const OVERRIDES: readonly string[] = ["GET", "PUT", "PATCH", "DELETE"];

function findUnlessMalformed<T>(find: () => T): T | undefined {
  try {
    return find();
  } catch {
    return undefined;
  }
}
