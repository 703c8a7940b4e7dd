// The two forms that messages have over RPC.
import { type DescField, type DescMessage, fromBinary, type Message, type Registry } from "@bufbuild/protobuf";
import { PREFIX_BYTES } from "../../codec/frame-scratch.js";
import { encodeFrame, encodeMessage } from "../../codec/frame-writer.js";
import { readOrReject } from "../../codec/json-read-value.js";
import { readMessage } from "../../codec/json-reader.js";
import { createJsonWriters } from "../../codec/json-writer.js";
import { invalidRequest } from "../../kernel/errors.js";
import { parseStrictJson } from "../../kernel/strict-json.js";
import { decodeJsonText } from "../http/body-reader.js";
import { createBinaryListEncoder, createJsonListEncoder, type ListEncoder } from "../http/list-pieces.js";

/** Decodes requests, and encodes responses: messages, or init objects of them. */
export interface MessageCodec {
  readonly isJson: boolean;

  /** @throws ApiError INVALID_ARGUMENT, which names the field in JSON */
  decode(input: DescMessage, bytes: Uint8Array): Message;

  /** @throws TypeError, RangeError for values that the fields cannot have, which is a bug in a handler */
  encode(output: DescMessage, response: object): string | Buffer;

  /** Encodes a response with the prefix of an uncompressed message; throws as `encode` does. */
  encodeFrame(output: DescMessage, response: object): Buffer;

  /** Creates the encoder of a list in chunks, whose only field is `list`. */
  createListEncoder(output: DescMessage, list: DescField): ListEncoder;
}

// Handlers need no unknown fields, which would take memory as long as the message lives.
const KNOWN_FIELDS = { readUnknownFields: false };

/** Messages in the binary form of protobuf. */
export const binaryCodec: MessageCodec = {
  isJson: false,
  decode(input, bytes) {
    try {
      return fromBinary(input, bytes, KNOWN_FIELDS);
    } catch {
      throw invalidRequest(`the message is no ${input.typeName}`);
    }
  },
  encode: encodeMessage,
  encodeFrame,
  createListEncoder: createBinaryListEncoder,
};

/**
 * Creates the codec of messages in JSON. Requests are decoded as those of REST are: protobuf-es changes or loses some
 * values instead of rejecting them (docs/transcoding.md#json). Responses have the JSON mapping of protobuf.
 *
 * @param registry the types that an Any may contain
 */
export function createJsonCodec(registry: Registry): MessageCodec {
  const writers = createJsonWriters(registry, "exact");
  const encode = (output: DescMessage, response: object) => writers.details.writerOf(output)(response);
  return {
    isJson: true,
    decode(input, bytes) {
      const json = parseStrictJson(decodeJsonText(bytes, undefined), "body");
      return readOrReject(() => readMessage(input, json, "", { registry, ignoreUnknown: true }));
    },
    encode,
    encodeFrame(output, response) {
      const text = encode(output, response);
      const size = Buffer.byteLength(text);
      const frame = Buffer.allocUnsafe(PREFIX_BYTES + size);
      frame[0] = 0;
      frame.writeUInt32BE(size, 1);
      frame.write(text, PREFIX_BYTES);
      return frame;
    },
    createListEncoder: (_output, list) => createJsonListEncoder(list, writers.elements(list), "{}"),
  };
}
