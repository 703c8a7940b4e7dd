// The messages of mounted services, as connect-node reads and writes them: unknown fields stay, and errors have its texts.
import {
  create,
  type DescMessage,
  fromBinary,
  fromJsonString,
  type Message,
  type MessageInitShape,
  type Registry,
  toBinary,
  toJsonString,
} from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { toForeignError } from "../../kernel/errors.js";
import { sealWhole } from "./envelope.js";
import type { MessageCodec } from "./message-codec.js";

/** Creates the codec of messages in the binary form of protobuf. */
export function createMountedBinaryCodec(): MessageCodec {
  return createCodec(
    false,
    (input, bytes) => asForeign(() => fromBinary(input, bytes), "parse binary: ", Code.Internal),
    (output, message) => asForeign(() => Buffer.from(toBinary(output, message)), "serialize binary: ", Code.Internal),
  );
}

/**
 * Creates the codec of messages in JSON.
 *
 * @param registry the types that an Any may contain
 */
export function createMountedJsonCodec(registry: Registry): MessageCodec {
  const options = { registry, ignoreUnknownFields: true };
  const text = new TextDecoder();
  return createCodec(
    true,
    (input, bytes) => asForeign(() => fromJsonString(input, text.decode(bytes), options), "", Code.InvalidArgument),
    (output, message) => asForeign(() => Buffer.from(toJsonString(output, message, options)), "", Code.Internal),
  );
}

function createCodec(
  isJson: boolean,
  decode: (input: DescMessage, bytes: Uint8Array) => Message,
  write: (output: DescMessage, message: Message) => Buffer,
): MessageCodec {
  const encode = (output: DescMessage, response: object) =>
    write(output, create(output, response as MessageInitShape<DescMessage>));
  return {
    isJson,
    decode,
    encode,
    encodeFrame: (output, response) => sealWhole(0, encode(output, response)),
    createListEncoder() {
      throw new TypeError("mounted methods have no lists in chunks");
    },
  };
}

function asForeign<T>(run: () => T, prefix: string, code: Code): T {
  try {
    return run();
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    throw toForeignError(new ConnectError(prefix + message, code), () => {});
  }
}
