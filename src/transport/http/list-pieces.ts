// Unpaginated lists, whose chunks become the pieces of one message. RPC collects them: a message begins with its length,
// and callers learn how a list failed. REST sends each piece when it is read.
import type { OutgoingHttpHeaders } from "node:http";
import type { DescField, DescMessage } from "@bufbuild/protobuf";
import { PREFIX_BYTES } from "../../codec/frame-scratch.js";
import { encodeMessage } from "../../codec/frame-writer.js";
import { quote } from "../../codec/json-scalar.js";
import type { ValueWriter } from "../../codec/json-wkt.js";
import { callerGone, resourceExhausted } from "../../kernel/errors.js";
import type { Request } from "./request.js";

/** Encodes the chunks of one list. */
export interface ListEncoder {
  /** Encodes the next chunk as a piece, which may be empty. */
  encode(chunk: object): Buffer;
  /** What ends the message after its last piece. */
  end(): Buffer;
}

/** Creates the encoder of one list. */
export type CreateListEncoder = () => ListEncoder;

const NOTHING = Buffer.alloc(0);

/**
 * Encodes lists in binary: the concatenation of the messages of its chunks is the message of the list (protobuf
 * encoding, "Last One Wins").
 */
export function createBinaryListEncoder(output: DescMessage): ListEncoder {
  return { encode: (chunk) => encodeMessage(output, chunk), end: () => NOTHING };
}

/**
 * Encodes lists in JSON: an object with the one field of the response.
 *
 * @param list the field
 * @param write writes the elements of a chunk as a list
 * @param empty the list without elements
 */
export function createJsonListEncoder(list: DescField, write: ValueWriter, empty: string): ListEncoder {
  let isEmpty = true;
  return {
    encode(chunk) {
      const elements = write((chunk as Record<string, unknown>)[list.localName] ?? []).slice(1, -1);
      if (elements === "") return NOTHING;
      const before = isEmpty ? `{${quote(list.jsonName)}:[` : ",";
      isEmpty = false;
      return Buffer.from(before + elements);
    },
    end: () => Buffer.from(isEmpty ? empty : "]}"),
  };
}

/** The bytes of a message in pieces. */
export interface Pieces {
  readonly pieces: Buffer[];
  readonly bytes: number;
}

/** A list that is collected. */
export interface CollectedList {
  readonly chunks: AsyncIterable<object>;
  readonly encoder: ListEncoder;
  /** The most bytes of its message with the prefix that gRPC adds. */
  readonly maxBytes: number;
  /** The request to which its bytes are charged. */
  readonly request: Request;
}

/**
 * Collects the message of a list. Its bytes are charged when they are encoded; who writes them releases them.
 *
 * @throws ApiError RESOURCE_EXHAUSTED when the list is larger than a response may be, or too many bytes are buffered for
 * its caller; what `chunks` throws
 */
export async function collectList(list: CollectedList): Promise<Pieces> {
  const { chunks, encoder, maxBytes, request } = list;
  const pieces: Buffer[] = [];
  let bytes = 0;
  let isCutOff = false;
  const onCutOff = () => {
    isCutOff = true;
  };
  const add = (piece: Buffer) => {
    if (piece.length === 0) return;
    bytes += piece.length;
    if (PREFIX_BYTES + bytes > maxBytes) throw resourceExhausted(`list: more than ${maxBytes} bytes`);
    request.chargeResponse(piece.length, onCutOff, true);
    pieces.push(piece);
  };
  try {
    for await (const chunk of chunks) {
      // A part of a list must not pass for the whole.
      if (request.isGone) throw callerGone();
      if (isCutOff) throw resourceExhausted("list: it was too slow, and others needed its room", undefined, "buffers");
      add(encoder.encode(chunk));
    }
    add(encoder.end());
  } catch (error) {
    request.dropResponse();
    throw error;
  }
  return { pieces, bytes };
}

/** A list that is sent while it is read. */
export interface StreamedList {
  readonly request: Request;
  readonly headers: OutgoingHttpHeaders;
  readonly first: object;
  /** The chunks after the first. */
  readonly chunks: AsyncGenerator<object, void, void>;
  readonly encoder: ListEncoder;
}

/**
 * Sends a list with each chunk as it is read and with backpressure. Resolves when all is sent or the caller has
 * disconnected.
 *
 * @throws what the encoder and `chunks` throw; with the first chunk nothing was sent, later the response is incomplete
 */
export async function streamList({ request, headers, first, chunks, encoder }: StreamedList): Promise<void> {
  try {
    let piece = encoder.encode(first);
    if (request.isGone) return;
    const { isHead } = request;
    request.writeHead(200, { ...headers, "x-content-type-options": "nosniff" }, isHead ? "nothing" : "pieces");
    if (isHead) return;
    for await (const chunk of chunks) {
      await request.write(piece);
      if (request.isGone) return;
      piece = encoder.encode(chunk);
    }
    await request.write(Buffer.concat([piece, encoder.end()]));
    request.end();
  } finally {
    await chunks.return();
  }
}
