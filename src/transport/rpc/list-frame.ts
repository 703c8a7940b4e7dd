// Unpaginated lists as one message, which is the concatenation of the messages of its chunks (protobuf encoding, "Last
// One Wins").

import type { DescMessage } from "@bufbuild/protobuf";
import { PREFIX_BYTES } from "../../codec/frame-scratch.js";
import { resourceExhausted } from "../../kernel/errors.js";
import type { Limits } from "../http/limits.js";
import type { OpenRequest } from "../http/open-request.js";

/** A frame in pieces. */
export interface ListFrame {
  readonly pieces: Buffer[];
  readonly bytes: number;
}

/** A list whose chunks are joined. */
export interface ChunkedList {
  readonly output: DescMessage;
  readonly chunks: AsyncIterable<object>;
  /** Whether the caller has disconnected. */
  readonly isGone: () => boolean;
  /** The request to which its bytes are charged. */
  readonly request: OpenRequest | undefined;
  /** Cuts the response off, if it is rejected to make room. */
  readonly cutOff: () => void;
}

/** Joins the chunks of a list to one frame; see {@link createListFrames}. */
export type ListFrames = (list: ChunkedList) => Promise<ListFrame>;

/**
 * Creates the function that joins the chunks of a list. A frame begins with its length, so nothing is sent before the
 * list is complete. Its bytes are charged when they are encoded, and released when the peer takes them.
 *
 * @param frameOf encodes one chunk
 * @throws ApiError RESOURCE_EXHAUSTED, by the created function, when a list is larger than a response may be or too
 * many bytes are buffered for its caller
 */
export function createListFrames(
  { responseBytes }: Pick<Limits, "responseBytes">,
  frameOf: (desc: DescMessage, chunk: object) => Buffer,
): ListFrames {
  return async ({ output, chunks, isGone, request, cutOff }) => {
    const pieces: Buffer[] = [];
    let bytes = PREFIX_BYTES;
    let isCutOff = false;
    const onCutOff = () => {
      isCutOff = true;
      cutOff();
    };
    try {
      for await (const chunk of chunks) {
        if (isGone() || isCutOff) break;
        const frame = frameOf(output, chunk);
        bytes += frame.length - PREFIX_BYTES;
        if (bytes > responseBytes) throw resourceExhausted(`list: more than ${responseBytes} bytes`);
        request?.chargeResponse(frame.length, onCutOff, true);
        pieces.push(pieces.length === 0 ? frame : frame.subarray(PREFIX_BYTES));
      }
    } catch (error) {
      request?.dropResponse();
      throw error;
    }
    pieces[0]?.writeUInt32BE(bytes - PREFIX_BYTES, 1);
    return { pieces, bytes };
  };
}
