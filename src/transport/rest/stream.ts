// Sends streams while they are read, as lines of JSON, server-sent events or the bytes of a file.
import type { ServerResponse } from "node:http";
import { prefersEvents } from "../http/content-negotiation.js";
import { type HttpRequest, type HttpResponse, isGone } from "../http/http-message.js";
import { breakOff } from "../http/list-pieces.js";
import { writeHead, writeWithBackpressure } from "../http/response-writer.js";
import type { ResponseHeaders } from "../http/send.js";
import type { MessageEncode } from "./encode.js";

/** How often an event stream without events sends a comment, in milliseconds. */
export const DEFAULT_HEARTBEAT_MS = 15_000;

/** A stream and how it is sent. */
export interface StreamResponse {
  readonly req: HttpRequest;
  readonly res: HttpResponse;
  readonly messages: AsyncIterable<object>;
  readonly encode: MessageEncode;
  /** The headers to send; called when there is a first message. */
  readonly headersOf: () => ResponseHeaders;
  /** Formats an error after the first message, as google.rpc.Status in JSON. */
  readonly errorTextOf: (error: unknown) => string;
  readonly heartbeatMs: number;
}

interface Format {
  readonly contentType: string;
  readonly frame: (message: object) => string | Uint8Array;
  /** Formats the error for the caller; undefined for bytes of a file, which cannot contain it. */
  readonly failure: ((text: string) => string) | undefined;
  readonly heartbeat?: string;
}

/**
 * Sends a stream with backpressure. Nothing is sent before the first message, so that a call that fails at once is
 * answered as any other. A stream that fails later ends with the error and is aborted, so that it does not look
 * complete.
 *
 * @throws whatever the stream throws before the first message; then nothing was sent
 */
export async function sendStream(response: StreamResponse): Promise<void> {
  const { req, res, encode } = response;
  const messages = response.messages[Symbol.asyncIterator]();
  try {
    let next = await messages.next();
    const format = encode.kind === "raw" ? createBytesFormat(encode, next) : createTextFormat(req, encode);
    let frame = next.done === true ? "" : format.frame(next.value);
    if (isGone(res)) return;
    const headers = {
      ...response.headersOf(),
      "content-type": format.contentType,
      "x-content-type-options": "nosniff",
    };
    writeHead(res, 200, headers);
    if (req.method === "HEAD") {
      res.end();
      return;
    }
    const heart = startHeartbeat(res, format, response.heartbeatMs);
    try {
      while (next.done !== true) {
        heart.pause();
        await writeWithBackpressure(res, typeof frame === "string" ? Buffer.from(frame) : frame);
        if (isGone(res)) return;
        heart.resume();
        next = await messages.next();
        if (next.done !== true) frame = format.frame(next.value);
      }
      res.end();
    } catch (error) {
      const text = response.errorTextOf(error);
      if (!isGone(res)) breakOff(res, format.failure?.(text) ?? "");
    } finally {
      heart.pause();
    }
  } finally {
    await messages.return?.();
  }
}

function createTextFormat(req: HttpRequest, { textOf }: Extract<MessageEncode, { kind: "json" }>): Format {
  if (prefersEvents(req.headers.accept)) {
    return {
      contentType: "text/event-stream",
      frame: (message) => `data: ${textOf(message)}\n\n`,
      failure: (text) => `event: error\ndata: ${text}\n\n`,
      heartbeat: ":\n\n",
    };
  }
  return {
    contentType: "application/x-ndjson",
    frame: (message) => `{"result":${textOf(message)}}\n`,
    failure: (text) => `{"error":${text}}\n`,
  };
}

function createBytesFormat({ bodyOf }: Extract<MessageEncode, { kind: "raw" }>, first: IteratorResult<object>): Format {
  return {
    contentType: bodyOf(first.done === true ? {} : first.value).contentType,
    frame: (message) => bodyOf(message).body,
    failure: undefined,
  };
}

// Proxies and the limits of this service cut idle connections. The heartbeat is sent only when all messages were
// written: a caller that does not read needs no more bytes.
function startHeartbeat(res: HttpResponse, { heartbeat }: Format, everyMs: number) {
  let timer: NodeJS.Timeout | undefined;
  return {
    resume() {
      if (heartbeat === undefined) return;
      timer = setInterval(() => {
        if (!isGone(res)) (res as ServerResponse).write(heartbeat);
      }, everyMs);
    },
    pause() {
      clearInterval(timer);
    },
  };
}
