// gRPC over node:http2, from a chosen address: frames in, frames and status out.
import { type ClientHttp2Session, type ClientHttp2Stream, connect, constants } from "node:http2";
import { connect as connectTcp } from "node:net";

/** A call to make. */
export interface GrpcCall {
  /** `/package.Service/Method` */
  readonly path: string;
  readonly token?: string | undefined;
  readonly message: Uint8Array;
  readonly timeoutMs: number;
  readonly headers?: Readonly<Record<string, string>>;
  /** The body to send in place of the message in its frame. */
  readonly framed?: Uint8Array;
}

/** What came back. */
export interface GrpcResponse {
  /** `grpc-status`; undefined where none came. */
  readonly status: string | undefined;
  readonly messages: readonly Buffer[];
}

/** A connection for gRPC; it opens again when it was lost. */
export interface Grpc {
  /** Rejects when the stream ends in an error or takes too long. */
  call(call: GrpcCall): Promise<GrpcResponse>;
  close(): void;
}

/** Opens an HTTP/2 session in cleartext from this address. Errors of the session only end its streams. */
export function openSession(url: string, address: string, settings = {}): ClientHttp2Session {
  const { port } = new URL(url);
  const session = connect(url, {
    settings,
    // In megabytes, for all requests of a session: Node counts for ever what was unsent of those that were refused.
    maxSessionMemory: 10_000,
    createConnection: () => connectTcp({ host: "127.0.0.1", port: Number(port), localAddress: address }),
  });
  session.on("error", () => {});
  return session;
}

/** Opens such a connection. */
export function openGrpc(url: string, address: string): Grpc {
  let session: ClientHttp2Session | undefined;

  function current(): ClientHttp2Session {
    if (session === undefined || session.closed || session.destroyed) {
      const opened = openSession(url, address);
      opened.on("goaway", () => {
        if (session === opened) session = undefined;
      });
      session = opened;
    }
    return session;
  }

  return {
    call: (call) => callOn(current(), call),
    close: () => session?.destroy(),
  };
}

/** Makes one call on a session. */
export function callOn(session: ClientHttp2Session, call: GrpcCall): Promise<GrpcResponse> {
  const { path, token, message, timeoutMs, headers = {}, framed = frame(message) } = call;
  return new Promise((resolve, reject) => {
    const stream: ClientHttp2Stream = session.request({
      ":method": "POST",
      ":path": path,
      "content-type": "application/grpc",
      te: "trailers",
      ...(token !== undefined && { authorization: `Bearer ${token}` }),
      ...headers,
    });
    const chunks: Buffer[] = [];
    let status: string | undefined;
    const timer = setTimeout(() => {
      stream.close(constants.NGHTTP2_CANCEL);
      reject(new Error(`no answer in ${timeoutMs} ms`));
    }, timeoutMs);
    stream.on("response", (response) => (status ??= response["grpc-status"] as string | undefined));
    stream.on("trailers", (trailers) => (status ??= trailers["grpc-status"] as string | undefined));
    stream.on("data", (chunk: Buffer) => chunks.push(chunk));
    stream.on("error", (error: NodeJS.ErrnoException) => {
      // A reset that follows the status takes nothing from it.
      if (status === undefined) reject(new Error(error.code ?? error.message));
    });
    const finish = () => {
      clearTimeout(timer);
      resolve({ status, messages: messagesIn(Buffer.concat(chunks)) });
    };
    // The response is whole although the request may not be: what is left of that nobody reads.
    stream.on("end", () => {
      if (status === undefined) return;
      finish();
      if (!stream.writableFinished) stream.close(constants.NGHTTP2_CANCEL);
    });
    stream.on("close", finish);
    stream.end(framed);
  });
}

/** A message as gRPC sends it. @param flags 1 where it is compressed */
export function frame(message: Uint8Array, flags = 0): Buffer {
  const head = Buffer.alloc(5);
  head[0] = flags;
  head.writeUInt32BE(message.length, 1);
  return Buffer.concat([head, message]);
}

function messagesIn(bytes: Buffer): Buffer[] {
  const messages: Buffer[] = [];
  for (let at = 0; at + 5 <= bytes.length; ) {
    const end = at + 5 + bytes.readUInt32BE(at + 1);
    messages.push(bytes.subarray(at + 5, end));
    at = end;
  }
  return messages;
}
