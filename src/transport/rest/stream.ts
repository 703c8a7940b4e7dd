// Responses that are sent while they are read: streams, as lines of JSON, as
// server-sent events or as the bytes of a file, and long lists, chunk by chunk.
import type { ServerResponse } from "node:http";
import { writeAtPace, writeHead } from "../http/answer-writer.js";
import { prefersEvents } from "../http/content-negotiation.js";
import { abort, type HttpRequest, type HttpResponse, isGone } from "../http/http-message.js";
import { recordOf } from "../http/request-record.js";
import type { ResponseHeaders } from "../http/send.js";
import type { EncodedAnswer, MessageEncode } from "./encode.js";

/** How often an event stream without events sends a comment, in milliseconds. */
export const DEFAULT_HEARTBEAT_MS = 15_000;

/** What is sent of a stream. */
export interface StreamAnswer {
  readonly req: HttpRequest;
  readonly res: HttpResponse;
  readonly messages: AsyncIterable<object>;
  readonly encode: MessageEncode;
  /** The headers to send; asked when the first message is there. */
  readonly headersOf: () => ResponseHeaders;
  /** An error after the first message, as google.rpc.Status in JSON. */
  readonly errorTextOf: (error: unknown) => string;
  readonly heartbeatMs: number;
}

interface Format {
  readonly contentType: string;
  readonly frame: (message: object) => string | Uint8Array;
  /** What tells the caller of a failure; bytes of a file have no room for it. */
  readonly failure: ((text: string) => string) | undefined;
  readonly heartbeat?: string;
}

/**
 * Sends a stream at the pace its caller reads. Nothing is sent before the first message is there,
 * so that a call which fails at once can be answered like any other. A stream that fails later ends
 * with the error and without the end that HTTP has for complete messages: it is never mistaken for
 * one that is.
 *
 * @throws whatever the stream throws before the first message; then nothing has been sent.
 */
export async function sendStream(answer: StreamAnswer): Promise<void> {
  const { req, res, encode } = answer;
  const messages = answer.messages[Symbol.asyncIterator]();
  try {
    let next = await messages.next();
    const format = encode.kind === "raw" ? bytesOf(encode, next) : textOf(req, encode);
    let frame = next.done === true ? "" : format.frame(next.value);
    if (isGone(res)) return;
    const headers = { ...answer.headersOf(), "content-type": format.contentType, "x-content-type-options": "nosniff" };
    writeHead(res, 200, headers);
    if (req.method === "HEAD") {
      res.end();
      return;
    }
    const heart = heartbeat(res, format, answer.heartbeatMs);
    try {
      while (next.done !== true) {
        heart.pause();
        await writeAtPace(res, typeof frame === "string" ? Buffer.from(frame) : frame);
        if (isGone(res)) return;
        heart.resume();
        next = await messages.next();
        if (next.done !== true) frame = format.frame(next.value);
      }
      res.end();
    } catch (error) {
      const text = answer.errorTextOf(error);
      if (!isGone(res)) breakOff(res, format.failure?.(text) ?? "");
    } finally {
      heart.pause();
    }
  } finally {
    await messages.return?.();
  }
}

function textOf(req: HttpRequest, { textOf }: Extract<MessageEncode, { kind: "json" }>): Format {
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

function bytesOf({ bodyOf }: Extract<MessageEncode, { kind: "raw" }>, first: IteratorResult<object>): Format {
  return {
    contentType: bodyOf(first.done === true ? {} : first.value).contentType,
    frame: (message) => bodyOf(message).body,
    failure: undefined,
  };
}

// Proxies and the limits of this service cut connections that are idle for long. The heartbeat is sent only while there
// is no message to send: a caller that does not read needs no more bytes.
function heartbeat(res: HttpResponse, { heartbeat }: Format, everyMs: number) {
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

/** Once the last bytes are out, ends the connection (HTTP/1.1) or the stream (HTTP/2): the answer is incomplete. */
function breakOff(res: HttpResponse, last: string): void {
  (res as ServerResponse).write(last, () => abort(res));
}

/** What is sent of a list. */
export interface ListAnswer {
  readonly req: HttpRequest;
  readonly res: HttpResponse;
  /** The first chunk, encoded. */
  readonly first: EncodedAnswer;
  /** The chunks after it. */
  readonly chunks: AsyncGenerator<object, void, void>;
  readonly encode: (chunk: object) => EncodedAnswer;
  readonly headers: ResponseHeaders;
  /** Called with the error that cut the list off. */
  readonly onError: (error: unknown) => void;
}

/**
 * Sends a list as one JSON object, each chunk when it has been read and at the pace the caller reads.
 * Resolves when all is sent or the caller has gone. A list that cannot be read to its end is cut off
 * without the end that HTTP has for complete messages, and is no JSON either.
 */
export async function sendListChunks({ req, res, first, chunks, encode, headers, onError }: ListAnswer): Promise<void> {
  try {
    if (isGone(res)) return;
    const all = { ...headers, "content-type": first.contentType, "x-content-type-options": "nosniff" };
    writeHead(res, 200, all);
    if (req.method === "HEAD") {
      res.end();
      return;
    }
    const text = String(first.body);
    // `{"items":[`, as in every chunk.
    const opening = text.slice(0, text.indexOf("[") + 1);
    let rest = text.slice(0, -2);
    let separator = rest === opening ? "" : ",";
    for await (const chunk of chunks) {
      await writeAtPace(res, Buffer.from(rest));
      if (isGone(res)) return;
      const elements = String(encode(chunk).body).slice(opening.length, -2);
      rest = elements === "" ? "" : separator + elements;
      if (elements !== "") separator = ",";
    }
    const end = Buffer.from(`${rest}]}`);
    const record = recordOf(res);
    if (record !== undefined) record.bytes += end.length;
    (res as ServerResponse).end(end);
  } catch (error) {
    onError(error);
    if (!isGone(res)) breakOff(res, "");
  } finally {
    await chunks.return();
  }
}
