// Answers a request with Upgrade over HTTP/1.1 (RFC 9110, section 7.8). Node's parser stops after such a request and
// drops what arrived behind it, or passes on the socket. So the request is put back in front of those bytes, without its
// Upgrade field, and the connection begins anew.
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";

export interface UpgradeRequest {
  /** The request, of which only the head has been read. */
  readonly req: IncomingMessage;
  readonly socket: Socket;
  /** The bytes that have arrived behind the head. */
  readonly head: Buffer;
  /** The newest response of the connection that has not closed. */
  readonly lastResponse: () => ServerResponse | undefined;
  /** Reads requests from the socket. */
  readonly serve: () => void;
}

/** Serves a request and those after it, once the responses to earlier requests of the connection have ended. */
export function serveWithoutUpgrade({ req, socket, head, lastResponse, serve }: UpgradeRequest): void {
  // Node has removed its own listeners.
  const destroy = () => socket.destroy();
  socket.on("error", destroy);
  socket.on("timeout", destroy);

  // In the next tick of the event loop, when Node has ended its work with the socket.
  const serveNext = () => setImmediate(serveIfFree);
  function serveIfFree(): void {
    const pending = lastResponse();
    if (pending !== undefined) {
      pending.once("close", serveNext);
      return;
    }
    socket.off("timeout", destroy);
    if (!socket.writable) socket.destroy();
    if (socket.destroyed) return;
    socket.unshift(Buffer.concat([formatHead(req), head]));
    serve();
    // Removed only now, when the server has its own listener: without one, an error would end the process.
    socket.off("error", destroy);
    socket.resume();
  }
  serveNext();
}

// The parser has checked the names and values, which are Latin-1, so they contain no line breaks.
function formatHead({ method, url, httpVersion, rawHeaders }: IncomingMessage): Buffer {
  let text = `${method} ${url} HTTP/${httpVersion}\r\n`;
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    if (rawHeaders[i]?.toLowerCase() !== "upgrade") text += `${rawHeaders[i]}: ${rawHeaders[i + 1]}\r\n`;
  }
  return Buffer.from(`${text}\r\n`, "latin1");
}
