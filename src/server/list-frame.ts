// Lists without pages as one message, which is the concatenation of the messages
// that its parts are (protobuf encoding, "Last One Wins").
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

/** A list that is put together. */
export interface ListInParts {
  readonly output: DescMessage;
  readonly parts: AsyncIterable<object>;
  /** Whether there is nobody left to answer. */
  readonly gone: () => boolean;
  /** The uid of who calls; asked when there is a part. */
  readonly caller: () => string;
}

/** Puts frames together; see {@link createListFrames}. */
export type ListFrames = (list: ListInParts) => Promise<ListFrame>;

/**
 * Creates what puts the parts of lists together. Nothing of a frame can be sent before all of it is
 * known, since its length comes first: how much is held is limited, for one list, for one caller, who
 * has half of it or one full response, and for all. What is a single part is an answer like any other
 * and not counted, so that others' long lists keep nobody from short ones.
 *
 * @param frameOf makes the frame of one part
 * @throws ApiError RESOURCE_EXHAUSTED, when a list is made, if it is larger than a response may be, or
 * the caller's or all of them together are too large; the latter pass.
 */
export function createListFrames(
  { responseBytes, listBytes }: Pick<Limits, "responseBytes" | "listBytes">,
  frameOf: (desc: DescMessage, part: object) => Buffer,
): ListFrames {
  const callerBytes = Math.max(responseBytes, listBytes / 2);
  const heldBy = new Map<string, number>();
  let heldByAll = 0;

  function hold(caller: string, bytes: number): void {
    const held = (heldBy.get(caller) ?? 0) + bytes;
    if (held > 0) heldBy.set(caller, held);
    else heldBy.delete(caller);
    heldByAll += bytes;
    if (bytes > 0 && (held > callerBytes || heldByAll > listBytes))
      throw resourceExhausted("list: too many long lists are being made", 1_000);
  }

  return async ({ output, parts, gone, caller }) => {
    const pieces: Buffer[] = [];
    let bytes = PREFIX_BYTES;
    let held = 0;
    let holder = "";
    const release = () => {
      hold(holder, -held);
      held = 0;
    };
    try {
      for await (const part of parts) {
        if (gone()) break;
        const frame = frameOf(output, part);
        pieces.push(pieces.length === 0 ? frame : frame.subarray(PREFIX_BYTES));
        bytes += frame.length - PREFIX_BYTES;
        if (bytes > responseBytes) throw resourceExhausted(`list: more than ${responseBytes} bytes`);
        if (pieces.length === 1) continue;
        const more = bytes - held;
        holder = caller();
        held = bytes;
        hold(holder, more);
      }
      pieces[0]?.writeUInt32BE(bytes - PREFIX_BYTES, 1);
      return { pieces, bytes, release };
    } catch (error) {
      release();
      throw error;
    }
  };
}
