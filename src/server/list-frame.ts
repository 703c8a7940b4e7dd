// Lists without pages as gRPC frames: one message, which is the concatenation of
// the messages that its parts are (protobuf encoding, "Last One Wins").
import type { ServerHttp2Stream } from "node:http2";
import type { DescMessage } from "@bufbuild/protobuf";
import { resourceExhausted } from "../kernel/errors.js";
import type { Limits } from "./limits.js";

const PREFIX_BYTES = 5;

/** A frame in pieces. */
export interface ListFrame {
  readonly pieces: readonly Buffer[];
  readonly bytes: number;
  /** Gives its memory back; whoever made the frame must call it. */
  release(): void;
}

/** Puts frames together; see {@link createListFrames}. */
export type ListFrames = (output: DescMessage, parts: AsyncIterable<object>, gone: () => boolean) => Promise<ListFrame>;

/**
 * Creates what puts the parts of lists together. Nothing of a frame can be sent before all of it is
 * known, since its length comes first: how much is held is limited, for one list as for all.
 *
 * @param frameOf makes the frame of one part
 * @throws ApiError RESOURCE_EXHAUSTED, when a list is made, if it is larger than a response may be, or
 * all of them together are; the latter passes.
 */
export function createListFrames(
  { responseBytes, listBytes }: Pick<Limits, "responseBytes" | "listBytes">,
  frameOf: (desc: DescMessage, part: object) => Buffer,
): ListFrames {
  let heldByAll = 0;

  return async (output, parts, gone) => {
    const pieces: Buffer[] = [];
    let bytes = PREFIX_BYTES;
    const release = () => {
      heldByAll -= bytes;
      bytes = 0;
    };
    heldByAll += bytes;
    try {
      for await (const part of parts) {
        if (gone()) break;
        const frame = frameOf(output, part);
        const piece = pieces.length === 0 ? frame : frame.subarray(PREFIX_BYTES);
        bytes += frame.length - PREFIX_BYTES;
        heldByAll += frame.length - PREFIX_BYTES;
        if (bytes > responseBytes) throw resourceExhausted(`list: more than ${responseBytes} bytes`);
        if (heldByAll > listBytes) throw resourceExhausted("list: too many long lists are being made", 1_000);
        pieces.push(piece);
      }
      pieces[0]?.writeUInt32BE(bytes - PREFIX_BYTES, 1);
      return { pieces, bytes, release };
    } catch (error) {
      release();
      throw error;
    }
  };
}

/** Writes the pieces of a frame at the pace the peer reads, and ends the stream; stops when the peer has gone. */
export async function writePieces(stream: ServerHttp2Stream, pieces: readonly Buffer[]): Promise<void> {
  for (const piece of pieces) {
    if (stream.destroyed || stream.closed) return;
    if (!stream.write(piece)) await drainedOrClosed(stream);
  }
  if (!stream.destroyed && !stream.closed) stream.end();
}

function drainedOrClosed(stream: ServerHttp2Stream): Promise<void> {
  return new Promise((resolve) => {
    const go = () => {
      stream.off("drain", go);
      stream.off("close", go);
      resolve();
    };
    stream.on("drain", go);
    stream.on("close", go);
  });
}
