// gRPC-Web as text: the same frames in base64, for browsers that read an answer while it arrives only as text
// (gRPC-Web, "Text-encoded (response) streams"). The request and the answer choose it independently.
import type { IncomingHttpHeaders } from "node:http";

/** Which sides of a call are text. */
export interface WebText {
  readonly request: boolean;
  readonly answer: boolean;
}

const TEXT = /^application\/grpc-web-text(?=$|[+;\s])/i;

/** Tells which sides of a gRPC-Web call are text; undefined where none is. */
export function findWebText({ "content-type": type = "", accept = "" }: IncomingHttpHeaders): WebText | undefined {
  const request = TEXT.test(type);
  const isWeb = request || type.startsWith("application/grpc-web");
  const accepted = accept.split(",").find((one) => one.trim().toLowerCase().startsWith("application/grpc-web"));
  // What is accepted counts; clients that do not say it are answered in the form of their request.
  const answer = isWeb && (accepted === undefined ? request : TEXT.test(accepted.trim()));
  return request || answer ? { request, answer } : undefined;
}

/** The type of the same messages as bytes, without the charset that browsers add to what they send as text. */
export function toBinaryType(contentType: string): string {
  if (!TEXT.test(contentType)) return contentType;
  const [type = ""] = contentType.split(";");
  return type.trimEnd().replace(TEXT, "application/grpc-web");
}

/** The type of the same messages as text. */
export function toTextType(contentType: string): string {
  return contentType.replace("application/grpc-web", "application/grpc-web-text");
}

/** So many bytes are encoded at once; a multiple of three, so that only the end of a frame is padded. */
const PIECE_BYTES = 48 * 1024;

/** A frame of an answer in pieces, padded, so that it can be read before the next arrives. */
export function* encodeWebText(frame: Uint8Array): Iterable<Buffer> {
  const { buffer, byteOffset, length } = frame;
  for (let start = 0; start < length; start += PIECE_BYTES) {
    const piece = Buffer.from(buffer, byteOffset + start, Math.min(PIECE_BYTES, length - start));
    yield Buffer.from(piece.toString("base64"), "latin1");
  }
}
