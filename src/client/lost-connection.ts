// Says UNAVAILABLE when the connection broke under a call, as gRPC does
// (statuscodes.md: "the connection dropped"). connect-node passes on how the
// stream ended, mostly as CANCELED, which callers take for their own doing.
import { Code, ConnectError, type Interceptor } from "@connectrpc/connect";

/** What Node says when a connection cannot be made or does not last. */
const LOST: ReadonlySet<string> = new Set([
  "ECONNRESET",
  "EPIPE",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "ERR_HTTP2_GOAWAY_SESSION",
  "ERR_HTTP2_INVALID_SESSION",
  "ERR_HTTP2_SESSION_ERROR",
  "ERR_HTTP2_STREAM_CANCEL",
]);

/**
 * An interceptor that turns the errors of broken connections into UNAVAILABLE.
 *
 * @param closes how often the connection was closed on purpose so far: a call that ends by that is left CANCELED
 */
export function lostConnections(closes: () => number): Interceptor {
  return (next) => async (request) => {
    const before = closes();
    try {
      return await next(request);
    } catch (error) {
      if (request.signal.aborted || closes() !== before || !isLost(error)) throw error;
      throw new ConnectError("the connection to the service was lost", Code.Unavailable, undefined, undefined, error);
    }
  };
}

function isLost(error: unknown): boolean {
  if (!(error instanceof ConnectError)) return false;
  // The service's own errors come with the headers or trailers of its answer.
  if (!error.metadata.keys().next().done) return false;
  return error.code === Code.Canceled || hasLostCause(error.cause);
}

function hasLostCause(cause: unknown): boolean {
  if (!(cause instanceof Error) || !("code" in cause) || typeof cause.code !== "string") return false;
  if (LOST.has(cause.code)) return true;
  return cause.code === "ERR_HTTP2_STREAM_ERROR" && cause.message.includes("REFUSED_STREAM");
}
