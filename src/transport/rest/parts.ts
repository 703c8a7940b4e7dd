// Lists without pages that are too long for one piece, sent as they are read.

import { writeAtPace, writeHead } from "../http/answer-writer.js";
import { type HttpRequest, type HttpResponse, isGone } from "../http/http-message.js";
import type { ResponseHeaders } from "../http/send.js";
import type { EncodedAnswer } from "./encode.js";
import { breakOff } from "./stream.js";

/** What is sent of a list. */
export interface ListAnswer {
  readonly req: HttpRequest;
  readonly res: HttpResponse;
  /** The first part, encoded. */
  readonly first: EncodedAnswer;
  /** The parts behind it. */
  readonly parts: AsyncGenerator<object, void, void>;
  readonly encode: (part: object) => EncodedAnswer;
  readonly headers: ResponseHeaders;
  /** Told of what cut the list off. */
  readonly onError: (error: unknown) => void;
}

/**
 * Sends a list as one JSON object, each part when it has been read and at the pace the caller reads.
 * Resolves when all is sent or the caller has gone. A list that cannot be read to its end is cut off
 * without the end that HTTP has for complete messages, and is no JSON either.
 */
export async function sendParts({ req, res, first, parts, encode, headers, onError }: ListAnswer): Promise<void> {
  try {
    if (isGone(res)) return;
    const all = { ...headers, "content-type": first.contentType, "x-content-type-options": "nosniff" };
    writeHead(res, 200, all);
    if (req.method === "HEAD") {
      res.end();
      return;
    }
    const text = String(first.body);
    // `{"items":[`, for every part alike.
    const opening = text.slice(0, text.indexOf("[") + 1);
    let rest = text.slice(0, -2);
    let separator = rest === opening ? "" : ",";
    for await (const part of parts) {
      await writeAtPace(res, Buffer.from(rest));
      if (isGone(res)) return;
      const elements = String(encode(part).body).slice(opening.length, -2);
      rest = elements === "" ? "" : separator + elements;
      if (elements !== "") separator = ",";
    }
    res.end(`${rest}]}`);
  } catch (error) {
    onError(error);
    if (!isGone(res)) breakOff(res, "");
  } finally {
    await parts.return();
  }
}
