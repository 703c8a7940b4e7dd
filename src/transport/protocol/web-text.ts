// The text format of gRPC-Web: its frames in base64, for browsers that can stream only text (gRPC-Web, "Text-encoded
// (response) streams"). Request and response may use it independently.
import type { IncomingHttpHeaders } from "node:http";

/** Whether the request and the response of a call are text. */
export interface WebText {
  readonly request: boolean;
  readonly answer: boolean;
}

const TEXT = /^application\/grpc-web-text(?=$|[+;\s])/i;

/** Finds which sides of a gRPC-Web call are text; undefined for other requests. */
export function findWebText({ "content-type": type = "", accept = "" }: IncomingHttpHeaders): WebText | undefined {
  const request = TEXT.test(type);
  const isWeb = request || type.startsWith("application/grpc-web");
  const accepted = accept.split(",").find((one) => one.trim().toLowerCase().startsWith("application/grpc-web"));
  // The response has the form that Accept names, otherwise that of the request.
  return isWeb ? { request, answer: accepted === undefined ? request : TEXT.test(accepted.trim()) } : undefined;
}

/** Converts a content type of text to that of bytes. */
export function toBinaryType(contentType: string): string {
  return contentType.replace(TEXT, "application/grpc-web");
}

/** Converts a content type of bytes to that of text. */
export function toTextType(contentType: string): string {
  return contentType.replace("application/grpc-web", "application/grpc-web-text");
}

/** How many bytes are encoded at once: a multiple of three, which needs no padding. */
const PIECE_BYTES = 48 * 1024;

/**
 * Encodes a frame of a response, which is given in pieces. It ends with its padding, so that it can be decoded before
 * the next frame arrives.
 */
export function* encodeWebText(pieces: readonly Uint8Array[]): Iterable<Buffer> {
  let rest: Buffer = Buffer.alloc(0);
  for (const piece of pieces) {
    const bytes = rest.length === 0 ? toBuffer(piece) : Buffer.concat([rest, piece]);
    const whole = bytes.length - (bytes.length % 3);
    for (let at = 0; at < whole; at += PIECE_BYTES) yield encode(bytes.subarray(at, Math.min(at + PIECE_BYTES, whole)));
    rest = bytes.subarray(whole);
  }
  if (rest.length > 0) yield encode(rest);
}

function toBuffer({ buffer, byteOffset, length }: Uint8Array): Buffer {
  return Buffer.from(buffer, byteOffset, length);
}

function encode(bytes: Buffer): Buffer {
  return Buffer.from(bytes.toString("base64"), "latin1");
}
