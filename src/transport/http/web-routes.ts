// Serves pages, redirects and the endpoints of OAuth. Their handlers do not depend on Node's HTTP objects.
import type { ConnectError } from "@connectrpc/connect";
import { httpStatusOf, retryAfterOf } from "../../codec/error-json.js";
import { answerError, invalidArgument, isCallerGone, rejectReasonOf } from "../../kernel/errors.js";
import { type JsonValue, parseStrictJson } from "../../kernel/strict-json.js";
import type { WebRequest, WebResponse, WebRoute, WebRoutes } from "../../kernel/web.js";
import { readBody } from "./body-reader.js";
import { HttpError } from "./http-message.js";
import type { Request } from "./request.js";
import { formatStatusJson, sendBody, sendEmpty, sendJson } from "./send.js";
import type { ServerSpans } from "./server-span.js";

export interface WebOptions {
  readonly routes: WebRoutes;
  readonly errorDomain: string;
  /** Begins the spans of requests, where traces are on. */
  readonly spans?: ServerSpans | undefined;
  /** Called with internal errors; the caller gets INTERNAL without their cause. */
  readonly onInternalError: (error: ConnectError, requestId: string) => void;
}

/** Answers requests for the routes. */
export type Web = ReturnType<typeof createWeb>;

/** Creates the handler of all routes. */
export function createWeb({ routes, errorDomain, spans, onInternalError }: WebOptions) {
  const table = createWebTable(routes);

  async function answer(found: FoundRoute, request: Request, path: string): Promise<void> {
    const { route, rest } = found;
    const { record } = request;
    spans?.beginRoute(record, request.fields, route.path);
    try {
      const asked = toWebRequest(request, route, { path, rest });
      if (route.access !== "public") route.access(asked);
      const response = await route.handle(asked);
      record.reason ??= response.rejection;
      send(request, response);
    } catch (error) {
      if (isCallerGone(error)) return;
      const cause = error instanceof HttpError ? error.error : error;
      const failure = answerError(cause, errorDomain, (internal) => onInternalError(internal, record.requestId));
      record.reason ??= rejectReasonOf(cause);
      record.trace?.noteError(failure);
      const retryAfter = retryAfterOf(failure);
      sendJson(
        request,
        error instanceof HttpError ? error.status : httpStatusOf(failure.code),
        formatStatusJson(failure),
        {
          ...(retryAfter !== undefined && { "retry-after": String(retryAfter) }),
        },
      );
    }
  }

  return {
    /** The methods that a path is served for, as in an Allow header; undefined when there are none. */
    allowed: table.methodsAt,
    /** The paths of the routes; one that ends in `/*` stands for all below it. */
    paths: routes.map(({ path }) => path),
    /** Answers if there is a route for `path`; false if there is none. */
    handle(request: Request, path: string): boolean {
      const allow = table.methodsAt(path);
      if (allow === undefined) return false;
      request.record.method = table.nameOf(path);
      const { method } = request;
      const found = table.find(method === "HEAD" ? "GET" : method, path);
      if (found === undefined && method === "OPTIONS") sendEmpty(request, 204, { allow });
      else if (found === undefined) sendBody(request, 405, "text/plain", "", { allow });
      else void answer(found, request, path);
      return true;
    },
  };
}

interface FoundRoute {
  readonly route: WebRoute;
  readonly rest: string;
}

/** In the order of an Allow header. */
const METHODS = ["GET, HEAD", "POST", "PUT", "PATCH", "DELETE"];

/** Finds routes by path and method; an exact path comes before one with `/*`. */
function createWebTable(routes: WebRoutes) {
  const exact = new Map<string, WebRoute[]>();
  const prefixes: { readonly prefix: string; readonly routes: WebRoute[] }[] = [];
  for (const route of routes) {
    const { path } = route;
    const known = path.endsWith("/*") ? prefixes.find(({ prefix }) => prefix === path.slice(0, -1)) : undefined;
    const sharing = known?.routes ?? exact.get(path);
    if (sharing?.some(({ method }) => method === route.method))
      throw new TypeError(`${route.method} ${path} is registered twice`);
    if (sharing) sharing.push(route);
    else if (path.endsWith("/*")) prefixes.push({ prefix: path.slice(0, -1), routes: [route] });
    else exact.set(path, [route]);
  }

  function routesAt(path: string): { readonly routes: readonly WebRoute[]; readonly rest: string } | undefined {
    const found = exact.get(path);
    if (found !== undefined) return { routes: found, rest: "" };
    const below = prefixes.find(({ prefix }) => path.startsWith(prefix));
    const sent = below && path.slice(below.prefix.length);
    const rest = sent === undefined || below?.routes[0]?.decodesRest ? sent : decodeSegments(sent);
    return below && rest !== undefined ? { routes: below.routes, rest } : undefined;
  }

  const names = new Map(routes.map(({ path }) => [path, formatRouteName(path)]));

  return {
    nameOf(path: string): string | undefined {
      const { routes: [route] = [] } = routesAt(path) ?? {};
      return route && names.get(route.path);
    },
    find(method: string, path: string): FoundRoute | undefined {
      const at = routesAt(path);
      const route = at?.routes.find((one) => one.method === method);
      return at && route && { route, rest: at.rest };
    },
    methodsAt(path: string): string | undefined {
      const routes = routesAt(path)?.routes;
      return (
        routes && METHODS.filter((method) => routes.some((route) => route.method === method.split(",")[0])).join(", ")
      );
    },
  };
}

/** Formats the name of a route in logs and metrics, such as `oauth.callback` for `/oauth/callback/*`. */
export function formatRouteName(path: string): string {
  const segments = path.replace(/\/\*$/, "").split("/");
  return segments.filter((segment) => segment !== "").join(".") || "home";
}

// Empty segments, malformed escapes and escaped slashes match no route, so that every path has one spelling.
function decodeSegments(rest: string): string | undefined {
  try {
    const segments = rest.split("/").map(decodeURIComponent);
    return segments.some((segment) => segment === "" || segment.includes("/")) ? undefined : segments.join("/");
  } catch {
    return undefined;
  }
}

interface RequestTarget {
  readonly path: string;
  readonly rest: string;
}

function toWebRequest(request: Request, { method, maxBytes }: WebRoute, { path, rest }: RequestTarget): WebRequest {
  const { url: target, record, fields } = request;
  const mark = target.indexOf("?");
  return {
    method,
    path,
    rest,
    query: new URLSearchParams(mark < 0 ? "" : target.slice(mark + 1)),
    remoteAddress: record.remoteAddress,
    requestId: record.requestId,
    trace: record.trace,
    record,
    traceId: record.traceId ?? "",
    header: (name) => request.header(name),
    cookie: (name) => findCookie(fields.cookie ?? "", name),
    form: () => readForm(request, maxBytes),
    json: () => readJson(request, maxBytes),
    bytes: async () => (request.mayHaveBody ? readBody(request, maxBytes) : new Uint8Array()),
  };
}

function findCookie(header: string, name: string): string | undefined {
  const values = header
    .split(";")
    .map((pair) => pair.trim())
    .filter((pair) => pair.startsWith(`${name}=`));
  return values.length === 1 ? values[0]?.slice(name.length + 1) : undefined;
}

async function readForm(request: Request, maxBytes: number): Promise<URLSearchParams> {
  if (!request.mayHaveBody) return new URLSearchParams();
  requireType(request, "application/x-www-form-urlencoded");
  return new URLSearchParams(Buffer.from(await readBody(request, maxBytes)).toString());
}

async function readJson(request: Request, maxBytes: number): Promise<JsonValue> {
  requireType(request, "application/json");
  const body = request.mayHaveBody ? await readBody(request, maxBytes) : new Uint8Array();
  return parseStrictJson(Buffer.from(body).toString(), "body");
}

function requireType({ fields }: Request, expected: string): void {
  const [type = ""] = (fields["content-type"] ?? "").split(";");
  if (type.trim().toLowerCase() === expected) return;
  const rule = `must be ${expected}`;
  throw new HttpError(415, invalidArgument({ field: "body", subject: "content-type", rule }));
}

// RFC 9110, section 8.6: the Content-Length of a response without a body is that of the response to GET, or absent.
function send(request: Request, { status, headers = {}, body = "" }: WebResponse): void {
  const { "content-type": type = "text/plain; charset=utf-8", ...rest } = headers;
  const fields = Object.fromEntries(
    Object.entries(rest).map(([name, value]) => [name, typeof value === "string" ? value : [...value]]),
  );
  const contentType = String(type);
  const described = { ...fields, "content-type": contentType, "content-length": Buffer.byteLength(body) };
  if (status === 304) sendEmpty(request, status, fields);
  else if (request.isHead) sendEmpty(request, status, described);
  else sendBody(request, status, contentType, body, fields);
}
