// The CORS protocol of the Fetch standard, for REST, Connect and gRPC-Web.
import { cors } from "@connectrpc/connect";
import type { Request } from "./request.js";
import { sendComplete } from "./response-writer.js";

/** Marks responses for scripts of other origins. */
export interface Cors {
  /**
   * Marks a response for the origin of its request, and answers preflight requests.
   *
   * @param methods the HTTP methods of the path, as in an Allow header; called for preflights only
   * @returns whether the request has been answered.
   */
  answer(request: Request, methods: () => string | undefined): boolean;

  /** The header fields that mark a response for the origin of its request. */
  fieldsFor(origin: string | undefined): CorsFields;
}

/** Header fields that let a script read a response. */
export type CorsFields = Readonly<Record<string, string>>;

/** How long browsers may cache a preflight, in seconds: the longest time that a browser uses. */
const MAX_AGE_S = 7200;

// Besides those of Connect and gRPC-Web: credentials, ids and traces, which libraries of browsers add to every request.
const ALLOWED_HEADERS = [
  ...cors.allowedHeaders.map((name) => name.toLowerCase()),
  ...["authorization", "x-request-id", "x-server-timeout", "x-http-method-override"],
  ...["traceparent", "tracestate", "baggage", "sentry-trace"],
];
/** The metadata of a call, of any name. */
const METADATA = /^grpc-metadata-[!#$%&'*+.^_`|~0-9a-z-]+$/;
const EXPOSED_HEADERS = [
  ...new Set([
    ...cors.exposedHeaders.map((name) => name.toLowerCase()),
    "grpc-status",
    "grpc-message",
    "grpc-status-details-bin",
    "x-request-id",
    "retry-after",
    "www-authenticate",
    "etag",
  ]),
].join(", ");

/**
 * Creates the layer.
 *
 * Origins are compared as a whole. For any other origin the response has no CORS fields, so the browser withholds it.
 * There is no credentials mode: callers authenticate with the token they send, never with cookies.
 *
 * @param origins exact origins as browsers send them, or `*` alone for all
 * @param options.headers names of fields that scripts may send besides those that are always allowed
 * @param options.ownPath a path that, with all below it, is for scripts of the service's own origin alone
 * @returns undefined without origins
 */
export function createCors(
  origins: readonly string[],
  { headers = [], ownPath }: { readonly headers?: readonly string[]; readonly ownPath?: string | undefined } = {},
): Cors | undefined {
  if (origins.length === 0) return undefined;
  const allowedHeaders = [...new Set([...ALLOWED_HEADERS, ...headers.map((name) => name.toLowerCase())])].join(", ");
  const any = origins.includes("*");
  const known = new Set(origins);

  const isAllowed = (origin: string | undefined): origin is string =>
    origin !== undefined && (any || known.has(origin));
  // Also on responses without CORS fields: a cache must not give them to other origins.
  const vary: CorsFields = any ? {} : { vary: "origin" };
  const allowOrigin = (origin: string | undefined): CorsFields =>
    isAllowed(origin) ? { ...vary, "access-control-allow-origin": any ? "*" : origin } : vary;

  const fieldsFor = (origin: string | undefined): CorsFields => ({
    ...allowOrigin(origin),
    ...(isAllowed(origin) && { "access-control-expose-headers": EXPOSED_HEADERS }),
  });

  return {
    answer(request, methods) {
      const { origin } = request.fields;
      if (ownPath !== undefined && `${request.record.path}/`.startsWith(`${ownPath}/`)) return false;
      const preflight = request.method === "OPTIONS" && request.fields["access-control-request-method"] !== undefined;
      if (!preflight) {
        request.responseFields = fieldsFor(origin);
        return false;
      }
      request.responseFields = allowOrigin(origin);
      if (!isAllowed(origin)) return false;
      const allowed = methods();
      if (allowed === undefined || request.isGone) return false;
      sendComplete(request, 204, {
        "access-control-allow-methods": allowed,
        "access-control-allow-headers": [allowedHeaders, ...findMetadata(request)].join(", "),
        "access-control-max-age": String(MAX_AGE_S),
      });
      return true;
    },
    fieldsFor,
  };
}

// CORS has no pattern for names, so those that the browser asks for are named.
function findMetadata({ fields }: Request): string[] {
  const asked = String(fields["access-control-request-headers"] ?? "")
    .toLowerCase()
    .split(",");
  return asked.map((name) => name.trim()).filter((name) => METADATA.test(name));
}
