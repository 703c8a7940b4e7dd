// Lists without pages as one message, which is the concatenation of the messages
// that its chunks are (protobuf encoding, "Last One Wins").

import type { DescMessage } from "@bufbuild/protobuf";
import { PREFIX_BYTES } from "../../codec/frame-scratch.js";
import { resourceExhausted } from "../../kernel/errors.js";
import type { Limits } from "../http/limits.js";
import type { RequestBuffers } from "../http/request-buffers.js";

/** A frame in pieces. */
export interface ListFrame {
  readonly pieces: Buffer[];
  readonly bytes: number;
}

/** A list that is put together. */
export interface ChunkedList {
  readonly output: DescMessage;
  readonly chunks: AsyncIterable<object>;
  /** Whether the caller has disconnected. */
  readonly isGone: () => boolean;
  /** What its bytes are charged to. */
  readonly buffers: RequestBuffers | undefined;
  /** Cuts the answer off, should it have to give way to others. */
  readonly cutOff: () => void;
}

/** Puts frames together; see {@link createListFrames}. */
export type ListFrames = (list: ChunkedList) => Promise<ListFrame>;

/**
 * Creates what joins the chunks of lists. Nothing of a frame can be sent before all of it is known, since
 * its length comes first: its bytes are charged as they are made, and given back as the peer takes them.
 *
 * @param frameOf encodes one chunk
 * @throws ApiError RESOURCE_EXHAUSTED, when a list is made, if it is larger than a response may be or its caller
 * has too much on the way already.
 */
export function createListFrames(
  { responseBytes }: Pick<Limits, "responseBytes">,
  frameOf: (desc: DescMessage, chunk: object) => Buffer,
): ListFrames {
  return async ({ output, chunks, isGone, buffers, cutOff }) => {
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
        buffers?.chargeAnswer(frame.length, onCutOff, true);
        pieces.push(pieces.length === 0 ? frame : frame.subarray(PREFIX_BYTES));
      }
    } catch (error) {
      buffers?.dropAnswer();
      throw error;
    }
    pieces[0]?.writeUInt32BE(bytes - PREFIX_BYTES, 1);
    return { pieces, bytes };
  };
}
