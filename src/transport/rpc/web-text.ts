// The text format of gRPC-Web: its frames in base64, for browsers that can stream only text (gRPC-Web, "Text-encoded
// (response) streams"). Request and response may use it independently.
import type { IncomingHttpHeaders } from "node:http";

/** Whether the request and the response of a call are text. */
export interface WebText {
  readonly request: boolean;
  readonly answer: boolean;
}

const TEXT = /^application\/grpc-web-text(?=$|[+;\s])/i;

/** Finds which sides of a gRPC-Web call are text; undefined if none is. */
export function findWebText({ "content-type": type = "", accept = "" }: IncomingHttpHeaders): WebText | undefined {
  const request = TEXT.test(type);
  const isWeb = request || type.startsWith("application/grpc-web");
  const accepted = accept.split(",").find((one) => one.trim().toLowerCase().startsWith("application/grpc-web"));
  // The response has the form that Accept names, otherwise that of the request.
  const answer = isWeb && (accepted === undefined ? request : TEXT.test(accepted.trim()));
  return request || answer ? { request, answer } : undefined;
}

/** Converts a content type of text to that of bytes. */
export function toBinaryType(contentType: string): string {
  return contentType.replace(TEXT, "application/grpc-web");
}

/** Converts a content type of bytes to that of text. */
export function toTextType(contentType: string): string {
  return contentType.replace("application/grpc-web", "application/grpc-web-text");
}

/** How many bytes are encoded at once: a multiple of three, so that only the end of a frame is padded. */
const PIECE_BYTES = 48 * 1024;

/**
 * Encodes a frame of a response in chunks. It ends with its padding, so that it can be decoded before the next frame
 * arrives.
 */
export function* encodeWebText(frame: Uint8Array): Iterable<Buffer> {
  const { buffer, byteOffset, length } = frame;
  for (let start = 0; start < length; start += PIECE_BYTES) {
    const piece = Buffer.from(buffer, byteOffset + start, Math.min(PIECE_BYTES, length - start));
    yield Buffer.from(piece.toString("base64"), "latin1");
  }
}
