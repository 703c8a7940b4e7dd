// One request over each HTTP version, byte for byte as a test says it.
import { type IncomingHttpHeaders, request } from "node:http";
import { type ClientHttp2Session, connect } from "node:http2";

/** What is sent. */
export interface Sent {
  readonly method?: string;
  readonly path: string;
  readonly headers?: Readonly<Record<string, string | string[]>>;
  readonly body?: string | Uint8Array;
}

/** What came back. */
export interface Received {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly bytes: Buffer;
  readonly text: string;
}

/** A request over HTTP/1.1 on a connection of its own. */
export function requestH1(port: number, { method = "GET", path, headers = {}, body }: Sent): Promise<Received> {
  return new Promise((resolve, reject) => {
    // node:http frames no body of a GET by itself.
    const length = body === undefined ? {} : { "content-length": Buffer.byteLength(body) };
    const options = { host: "127.0.0.1", port, method, path, headers: { ...length, ...headers }, agent: false };
    const req = request(options, (res) => {
      const chunks: Buffer[] = [];
      res.on("data", (chunk: Buffer) => chunks.push(chunk));
      res.on("end", () => resolve(buildReceived(res.statusCode ?? 0, res.headers, chunks)));
      res.on("error", reject);
    });
    req.on("error", reject);
    req.end(body);
  });
}

/** A request over cleartext HTTP/2 on a session of its own. */
export async function requestH2(port: number, sent: Sent): Promise<Received> {
  const session = connect(`http://127.0.0.1:${port}`);
  session.on("error", () => {});
  try {
    return await requestOn(session, sent);
  } finally {
    session.destroy();
  }
}

/** A request over HTTP/2 on an open session. */
export function requestOn(
  session: ClientHttp2Session,
  { method = "GET", path, headers = {}, body }: Sent,
): Promise<Received> {
  return new Promise((resolve, reject) => {
    const stream = session.request({ ":method": method, ":path": path, ...headers }, { endStream: body === undefined });
    let status = 0;
    let fields: IncomingHttpHeaders = {};
    const chunks: Buffer[] = [];
    stream.on("response", (head) => {
      status = head[":status"] ?? 0;
      fields = head;
    });
    stream.on("data", (chunk: Buffer) => chunks.push(chunk));
    stream.on("end", () => resolve(buildReceived(status, fields, chunks)));
    stream.on("error", reject);
    if (body !== undefined) stream.end(body);
  });
}

function buildReceived(status: number, headers: IncomingHttpHeaders, chunks: Buffer[]): Received {
  const bytes = Buffer.concat(chunks);
  return { status, headers, bytes, text: bytes.toString() };
}
