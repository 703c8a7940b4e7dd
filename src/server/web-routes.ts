// Serves what is neither RPC nor REST: pages, redirects and the endpoints of
// OAuth, whose handlers know nothing of HTTP's objects.
import { ConnectError } from "@connectrpc/connect";
import { mayHaveBody, readBody } from "../gateway/body.js";
import { httpStatusOf, retryAfterOf } from "../gateway/error-json.js";
import { CallerGone, HttpFault } from "../gateway/http-fault.js";
import {
  type HttpRequest,
  type HttpResponse,
  peerAddress,
  socketAddressOf,
  type TrustedProxies,
} from "../gateway/http-message.js";
import { ApiError, connectErrorFrom, invalidArgument } from "../kernel/errors.js";
import type { WebAnswer, WebHandler, WebRequest, WebRoutes } from "../kernel/web.js";
import { sendBody, sendEmpty, sendJson, statusJson } from "./refusal.js";

/** The largest form, in bytes. */
const MAX_FORM_BYTES = 64 * 1024;

/** What {@link createWeb} is made of. */
export interface WebOptions {
  readonly routes: WebRoutes;
  readonly errorDomain: string;
  readonly proxies: TrustedProxies | undefined;
  /** Told of errors the caller learns nothing about. */
  readonly onInternalError: (error: ConnectError) => void;
}

/** Answers requests for the routes. */
export interface Web {
  /** Answers if `path` is one of them; false if it is not. */
  handle(req: HttpRequest, res: HttpResponse, path: string): boolean;
  /** The methods that a path is served for, as in an Allow header; undefined when there are none. */
  allowed(path: string): string | undefined;
}

/** Creates it. */
export function createWeb({ routes, errorDomain, proxies, onInternalError }: WebOptions): Web {
  const table = new Map(Object.entries(routes));

  function allowed(path: string): string | undefined {
    const methods = table.get(path);
    if (methods === undefined) return undefined;
    return [methods.GET && "GET, HEAD", methods.POST && "POST"].filter(Boolean).join(", ");
  }

  async function answer(handler: WebHandler, request: WebRequest, req: HttpRequest, res: HttpResponse): Promise<void> {
    try {
      send(res, await handler(request), req.method === "HEAD");
    } catch (error) {
      if (error instanceof CallerGone) return;
      const cause = error instanceof HttpFault ? error.error : error;
      const seen = connectErrorFrom(cause, errorDomain);
      if (!(cause instanceof ApiError || cause instanceof ConnectError)) onInternalError(seen);
      const retryAfter = retryAfterOf(seen);
      sendJson(res, error instanceof HttpFault ? error.status : httpStatusOf(seen.code), statusJson(seen), {
        ...(retryAfter !== undefined && { "retry-after": String(retryAfter) }),
      });
    }
  }

  return {
    allowed,
    handle(req, res, path) {
      const methods = table.get(path);
      if (methods === undefined) return false;
      const method = req.method === "HEAD" ? "GET" : req.method;
      const handler = method === "GET" || method === "POST" ? methods[method] : undefined;
      if (handler === undefined) {
        const status = req.method === "OPTIONS" ? 204 : 405;
        sendBody(res, status, "text/plain", "", { allow: allowed(path) ?? "" });
        return true;
      }
      void answer(handler, requestOf(req, method as WebRequest["method"], path, proxies), req, res);
      return true;
    },
  };
}

function requestOf(
  req: HttpRequest,
  method: WebRequest["method"],
  path: string,
  proxies: TrustedProxies | undefined,
): WebRequest {
  const target = req.url ?? "";
  const mark = target.indexOf("?");
  return {
    method,
    path,
    query: new URLSearchParams(mark < 0 ? "" : target.slice(mark + 1)),
    remoteAddress: peerAddress(socketAddressOf(req), req.headers, proxies),
    header(name) {
      const value = req.headers[name];
      return typeof value === "object" ? value.join(", ") : value;
    },
    cookie: (name) => cookieIn(req.headers.cookie ?? "", name),
    form: () => formOf(req),
    bytes: async (maxBytes) => (mayHaveBody(req) ? readBody(req, maxBytes) : new Uint8Array()),
  };
}

function cookieIn(header: string, name: string): string | undefined {
  const values = header
    .split(";")
    .map((pair) => pair.trim())
    .filter((pair) => pair.startsWith(`${name}=`));
  return values.length === 1 ? values[0]?.slice(name.length + 1) : undefined;
}

async function formOf(req: HttpRequest): Promise<URLSearchParams> {
  if (!mayHaveBody(req)) return new URLSearchParams();
  const [type = ""] = (req.headers["content-type"] ?? "").split(";");
  if (type.trim().toLowerCase() !== "application/x-www-form-urlencoded") {
    const rule = "content-type must be application/x-www-form-urlencoded";
    throw new HttpFault(415, invalidArgument({ field: "body", description: rule }));
  }
  return new URLSearchParams(Buffer.from(await readBody(req, MAX_FORM_BYTES)).toString());
}

// RFC 9110, section 8.6: without a body the length is that of the answer to a GET, or none.
function send(res: HttpResponse, { status, headers = {}, body = "" }: WebAnswer, bare: boolean): void {
  const { "content-type": type = "text/plain; charset=utf-8", ...rest } = headers;
  const fields = Object.fromEntries(
    Object.entries(rest).map(([name, value]) => [name, typeof value === "string" ? value : [...value]]),
  );
  const contentType = String(type);
  const described = { ...fields, "content-type": contentType, "content-length": Buffer.byteLength(body) };
  if (status === 304) sendEmpty(res, status, fields);
  else if (bare) sendEmpty(res, status, described);
  else sendBody(res, status, contentType, body, fields);
}
