// Streams over REST: lines of JSON, server-sent events or the bytes of a file.
import type { OutgoingHttpHeaders } from "node:http";
import { prefersEvents } from "../http/content-negotiation.js";
import type { Request } from "../http/request.js";
import { type MessageEncode, RAW_FIELDS } from "./rest-route.js";

/** The form of a stream. */
export interface StreamFormat {
  /** Further fields of the response, unless the handler sets them. */
  readonly fields?: Readonly<Record<string, string>>;
  /** The type of the response, by its first message; undefined for a stream without one. */
  typeOf(first: object | undefined): string;
  frame(message: object): string | Uint8Array;
  /** Writes the error of a stream that has begun, google.rpc.Status in JSON; bytes of a file cannot contain it. */
  failure(text: string): string;
  /** What is sent while there are no messages. */
  readonly heartbeat?: string;
}

/** Finds the form that a caller asks for. */
export function streamFormatOf({ fields }: Request, encode: MessageEncode): StreamFormat {
  if (encode.kind === "raw") {
    return {
      fields: RAW_FIELDS,
      typeOf: (first) => encode.bodyOf(first ?? {}).contentType,
      frame: (message) => encode.bodyOf(message).body,
      failure: () => "",
    };
  }
  const { textOf } = encode;
  if (prefersEvents(fields.accept)) {
    return {
      typeOf: () => "text/event-stream",
      frame: (message) => `data: ${textOf(message)}\n\n`,
      failure: (text) => `event: error\ndata: ${text}\n\n`,
      heartbeat: ":\n\n",
    };
  }
  return {
    typeOf: () => "application/x-ndjson",
    frame: (message) => `{"result":${textOf(message)}}\n`,
    failure: (text) => `{"error":${text}}\n`,
  };
}

/**
 * Sends a stream with backpressure. Nothing is sent before the first message, so that a call that fails at once is
 * answered as any other.
 *
 * @param headersOf the fields of the handler; called when there is a first message
 * @param heartbeatMs how often a stream of events without events sends a comment, in milliseconds
 * @throws whatever the stream throws; if that is after the first message, the response has begun
 */
export async function sendStream(
  request: Request,
  stream: AsyncIterable<object>,
  format: StreamFormat,
  headersOf: () => OutgoingHttpHeaders,
  heartbeatMs: number,
): Promise<void> {
  const messages = stream[Symbol.asyncIterator]();
  const heart = startHeartbeat(request, format, heartbeatMs);
  try {
    let next = await messages.next();
    let frame = next.done === true ? "" : format.frame(next.value);
    if (request.isGone) return;
    const fields = {
      ...format.fields,
      ...headersOf(),
      "content-type": format.typeOf(next.done === true ? undefined : next.value),
      "x-content-type-options": "nosniff",
    };
    request.writeHead(200, fields, request.isHead ? "nothing" : "pieces");
    if (request.isHead) return;
    while (next.done !== true) {
      heart.pause();
      await request.write(typeof frame === "string" ? Buffer.from(frame) : frame);
      if (request.isGone) return;
      heart.resume();
      next = await messages.next();
      if (next.done !== true) frame = format.frame(next.value);
    }
    request.end();
  } finally {
    heart.pause();
    await messages.return?.();
  }
}

// Proxies and the limits of this service cut idle connections. The heartbeat is sent only when all messages were
// written: a caller that does not read needs no more bytes.
function startHeartbeat(request: Request, { heartbeat }: StreamFormat, everyMs: number) {
  let timer: NodeJS.Timeout | undefined;
  return {
    resume() {
      if (heartbeat !== undefined) timer = setInterval(() => request.writeNow(heartbeat), everyMs);
    },
    pause() {
      clearInterval(timer);
    },
  };
}
