// Unpaginated lists, whose chunks become the pieces of one message. RPC collects them: a message begins with its length,
// and callers learn how a list failed. REST sends each piece when it is read.
import type { OutgoingHttpHeaders, ServerResponse } from "node:http";
import type { DescField, DescMessage } from "@bufbuild/protobuf";
import { PREFIX_BYTES } from "../../codec/frame-scratch.js";
import { encodeMessage } from "../../codec/frame-writer.js";
import { quote } from "../../codec/json-scalar.js";
import type { ValueWriter } from "../../codec/json-wkt.js";
import { resourceExhausted } from "../../kernel/errors.js";
import { abort, type HttpResponse, isGone } from "./http-message.js";
import type { OpenRequest } from "./open-request.js";
import { writeHead, writeWithBackpressure } from "./response-writer.js";

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
  /** Whether the caller has disconnected. */
  readonly isGone: () => boolean;
  /** The request to which its bytes are charged. */
  readonly request: OpenRequest | undefined;
  /** Cuts the response off, if it is rejected to make room. */
  readonly cutOff: () => void;
}

/**
 * Collects the message of a list. Its bytes are charged when they are encoded; who writes them releases them.
 *
 * @throws ApiError RESOURCE_EXHAUSTED when the list is larger than a response may be, or too many bytes are buffered for
 * its caller; what `chunks` throws
 */
export async function collectList(list: CollectedList): Promise<Pieces> {
  const { chunks, encoder, maxBytes, isGone, request, cutOff } = list;
  const pieces: Buffer[] = [];
  let bytes = 0;
  let isCutOff = false;
  const onCutOff = () => {
    isCutOff = true;
    cutOff();
  };
  const add = (piece: Buffer) => {
    if (piece.length === 0) return;
    bytes += piece.length;
    if (PREFIX_BYTES + bytes > maxBytes) throw resourceExhausted(`list: more than ${maxBytes} bytes`);
    request?.chargeResponse(piece.length, onCutOff, true);
    pieces.push(piece);
  };
  try {
    for await (const chunk of chunks) {
      if (isGone() || isCutOff) break;
      add(encoder.encode(chunk));
    }
    add(encoder.end());
  } catch (error) {
    request?.dropResponse();
    throw error;
  }
  return { pieces, bytes };
}

/** A list that is sent while it is read. */
export interface StreamedList {
  readonly res: HttpResponse;
  /** Whether the headers alone are sent. */
  readonly isHead: boolean;
  readonly headers: OutgoingHttpHeaders;
  readonly first: object;
  /** The chunks after the first. */
  readonly chunks: AsyncGenerator<object, void, void>;
  readonly encoder: ListEncoder;
  /** Called with the error that ended the list. */
  readonly onError: (error: unknown) => void;
}

/**
 * Sends a list with each chunk as it is read and with backpressure. Resolves when all is sent or the caller has
 * disconnected. A list that fails is aborted.
 *
 * @throws what the encoder throws for the first chunk; then nothing was sent
 */
export async function streamList(list: StreamedList): Promise<void> {
  const { res, headers, first, chunks, encoder } = list;
  try {
    let piece = encoder.encode(first);
    if (isGone(res)) return;
    writeHead(res, 200, { ...headers, "x-content-type-options": "nosniff" });
    if (list.isHead) {
      res.end();
      return;
    }
    try {
      for await (const chunk of chunks) {
        await writeWithBackpressure(res, piece);
        if (isGone(res)) return;
        piece = encoder.encode(chunk);
      }
      await writeWithBackpressure(res, Buffer.concat([piece, encoder.end()]));
      if (!isGone(res)) res.end();
    } catch (error) {
      list.onError(error);
      if (!isGone(res)) breakOff(res, "");
    }
  } finally {
    await chunks.return();
  }
}

/**
 * Writes the last bytes, and then cuts the connection (HTTP/1.1) or resets the stream (HTTP/2), because the response is
 * incomplete.
 */
export function breakOff(res: HttpResponse, last: string): void {
  (res as ServerResponse).write(last, () => abort(res));
}
