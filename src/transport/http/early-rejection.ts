// Rejects requests of HTTP/1.1 before Node creates a response for them. Under overload most requests are rejected, and
// a response of Node takes a quarter of the processor time of a rejection.
import type { IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import { onTick } from "./tick.js";

/** What Node's server keeps at a connection, in all versions from 20 to 26. */
interface ServerSocket {
  readonly parser?: { onIncoming?: ((req: IncomingMessage, shouldKeepAlive: boolean) => unknown) | null } | null;
  /** The response that is being sent or awaited. */
  readonly _httpMessage?: unknown;
}

/** What Node's parser takes for: read the body as usual. */
const READ_BODY = 0;

export interface EarlyRejectionOptions {
  /** Whether a request is to be rejected. */
  readonly isRejected: (req: IncomingMessage) => boolean;
  /** Formats the whole response; undefined where Node must send it. */
  readonly format: (req: IncomingMessage) => string | undefined;
  readonly onError: (error: unknown) => void;
}

/**
 * Creates the early rejection for one server. Responses keep the order of their requests. A request whose response cannot
 * be sent at once takes Node's way.
 */
export function createEarlyRejection({ isRejected, format, onError }: EarlyRejectionOptions) {
  // At most one for each connection: a peer that reads no responses must not make others wait here.
  const waiting = new Map<Socket, string>();

  function send(socket: Socket): void {
    const response = waiting.get(socket);
    if (response === undefined) return;
    waiting.delete(socket);
    if (socket.writable) socket.write(response);
  }

  // Together with the other responses of a tick: a write of its own wakes the reader up, which costs as much as the rest.
  const schedule = onTick("rejections", () => {
    sendAll();
    return false;
  });

  function sendAll(): void {
    for (const socket of waiting.keys()) send(socket);
  }

  function reject(req: IncomingMessage): boolean {
    const { socket } = req;
    try {
      if (!isRejected(req) || !isSimple(req)) return false;
      const response = format(req);
      if (response === undefined) return false;
      waiting.set(socket, response);
      schedule();
    } catch (error) {
      onError(error);
      socket.destroy();
    }
    return true;
  }

  return {
    /** Looks at the requests of a connection from now on; called once Node's server has it. */
    watch(socket: Socket): void {
      const { parser } = socket as ServerSocket;
      // With a version of Node that has no such function, requests are rejected later, at a higher price.
      if (!parser?.onIncoming) return;
      const { onIncoming } = parser;
      parser.onIncoming = function (req, shouldKeepAlive) {
        // A pipelined request: its response must come after the one that waits.
        if (waiting.size > 0) send(socket);
        const isFree = shouldKeepAlive && !(socket as ServerSocket)._httpMessage && socket.writableLength === 0;
        if (isFree && reject(req)) return READ_BODY;
        return onIncoming.call(this, req, shouldKeepAlive);
      };
      // Node ends a connection at once when its peer has ended it and no response is awaited.
      socket.prependListener("end", () => send(socket));
    },
    /** Sends the responses that wait. */
    flush: sendAll,
  };
}

// Whether the connection stays one of HTTP/1.1, and the response has a body.
function isSimple({ httpVersionMajor, httpVersionMinor, method, headers }: IncomingMessage): boolean {
  const isHttp11 = httpVersionMajor === 1 && httpVersionMinor === 1;
  return isHttp11 && method !== "HEAD" && method !== "CONNECT" && headers.upgrade === undefined;
}
