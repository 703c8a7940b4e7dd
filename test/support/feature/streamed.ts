// A client that looks at a response while it is still coming.
import { type IncomingHttpHeaders, request } from "node:http";
import { connect, constants } from "node:http2";
import type { Readable } from "node:stream";
import type { Sent } from "./feature-server.js";

/** A response on its way. */
export interface Streamed {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  /** All that has come so far. */
  text(): string;
  /** Resolves as soon as `text()` includes `part`. */
  has(part: string): Promise<void>;
  /** Whether it came to its proper end or was cut off. */
  readonly end: Promise<"whole" | "cut">;
  /** Reads no more for now. */
  pause(): void;
  resume(): void;
  /** Goes away. */
  leave(): void;
}

/** Sends a request on a connection of its own; resolves with the headers of the response. */
export function openStream(protocol: "h1" | "h2", port: number, sent: Sent): Promise<Streamed> {
  return protocol === "h1" ? openH1(port, sent) : openH2(port, sent);
}

/** Sends a GET whose response is of no interest; the function it returns goes away. */
export function sendUnheard(protocol: "h1" | "h2", port: number, path: string): () => void {
  if (protocol === "h1") {
    const req = request({ host: "127.0.0.1", port, path, agent: false });
    req.on("error", () => {});
    req.end();
    return () => req.destroy();
  }
  const session = connect(`http://127.0.0.1:${port}`);
  session.on("error", () => {});
  const stream = session.request({ ":path": path });
  stream.on("error", () => {});
  stream.on("close", () => session.destroy());
  return () => stream.close(constants.NGHTTP2_CANCEL);
}

/** A promise and what resolves it. */
export function withResolvers(): { readonly promise: Promise<void>; readonly resolve: () => void } {
  let resolve = () => {};
  const promise = new Promise<void>((done) => {
    resolve = done;
  });
  return { promise, resolve };
}

function openH1(port: number, { method = "GET", path, headers = {}, body }: Sent): Promise<Streamed> {
  return new Promise((resolve, reject) => {
    const length = body === undefined ? {} : { "content-length": Buffer.byteLength(body) };
    const options = { host: "127.0.0.1", port, method, path, headers: { ...length, ...headers }, agent: false };
    const req = request(options, (res) => {
      req.off("error", reject).on("error", () => {});
      const end = new Promise<"whole" | "cut">((ended) => {
        res.once("close", () => ended(res.complete ? "whole" : "cut"));
      });
      const leave = () => req.destroy();
      resolve(createStreamed(res, { status: res.statusCode ?? 0, headers: res.headers, end, leave }));
    });
    req.once("error", reject);
    req.end(body);
  });
}

function openH2(port: number, { method = "GET", path, headers = {}, body }: Sent): Promise<Streamed> {
  return new Promise((resolve, reject) => {
    const session = connect(`http://127.0.0.1:${port}`);
    session.on("error", reject);
    const stream = session.request({ ":method": method, ":path": path, ...headers }, { endStream: body === undefined });
    stream.on("error", () => {});
    const end = new Promise<"whole" | "cut">((ended) => {
      stream.once("close", () => {
        session.destroy();
        ended(stream.rstCode === constants.NGHTTP2_NO_ERROR && stream.readableEnded ? "whole" : "cut");
      });
    });
    stream.once("response", (head) => {
      const leave = () => stream.close(constants.NGHTTP2_CANCEL);
      resolve(createStreamed(stream, { status: head[":status"] ?? 0, headers: head, end, leave }));
    });
    if (body !== undefined) stream.end(body);
  });
}

function createStreamed(readable: Readable, facts: Pick<Streamed, "status" | "headers" | "end" | "leave">): Streamed {
  let text = "";
  const waiting = new Set<() => void>();
  readable.setEncoding("latin1");
  readable.on("error", () => {});
  readable.on("data", (chunk: string) => {
    text += chunk;
    for (const look of waiting) look();
  });
  return {
    ...facts,
    text: () => text,
    has: (part) =>
      new Promise((resolve) => {
        const look = () => {
          if (!text.includes(part)) return;
          waiting.delete(look);
          resolve();
        };
        waiting.add(look);
        look();
      }),
    pause: () => void readable.pause(),
    resume: () => void readable.resume(),
  };
}
