// Compression of responses that are worth it. Small ones are most of the
// traffic: of them nothing is asked but their size.
import { promisify } from "node:util";
import { brotliCompress, constants, gzip } from "node:zlib";
import { type Coding, codingFor } from "./preferences.js";
import type { ResponseHeaders } from "./send.js";

/** The least size of a body that is compressed, in bytes. */
export const MIN_COMPRESSED_BYTES = 1024;

const gzipAsync = promisify(gzip);
const brotliAsync = promisify(brotliCompress);

/** Whether a body is large enough to be compressed. */
export function isLarge(body: string | Uint8Array): boolean {
  if (body.length >= MIN_COMPRESSED_BYTES) return true;
  // A character of UTF-16 takes up to three bytes.
  if (typeof body !== "string" || body.length * 3 < MIN_COMPRESSED_BYTES) return false;
  return Buffer.byteLength(body) >= MIN_COMPRESSED_BYTES;
}

/**
 * The body in the coding that the caller prefers, and the headers that say so. As it is when its
 * type does not compress well, or when it would only grow.
 */
export async function compressed(
  body: string | Uint8Array,
  contentType: string | undefined,
  acceptEncoding: string | undefined,
  headers: ResponseHeaders,
): Promise<string | Uint8Array> {
  if (!compresses(contentType)) return body;
  addVary(headers, "accept-encoding");
  const coding = codingFor(acceptEncoding);
  if (coding === undefined) return body;
  const plain = typeof body === "string" ? Buffer.from(body) : body;
  const coded = await encode[coding](plain);
  if (coded.length >= plain.length) return plain;
  headers["content-encoding"] = coding;
  return coded;
}

const encode: Readonly<Record<Coding, (bytes: Uint8Array) => Promise<Uint8Array>>> = {
  gzip: (bytes) => gzipAsync(bytes),
  br: (bytes) =>
    brotliAsync(bytes, {
      // The library's own default is made for what is compressed once and served for ever.
      params: { [constants.BROTLI_PARAM_QUALITY]: 4, [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length },
    }),
};

/** Adds a field name to a `vary` header. */
export function addVary(headers: ResponseHeaders, name: string): void {
  const { vary } = headers;
  headers.vary = vary === undefined ? name : `${vary}, ${name}`;
}

// Of text, and of what is text in disguise. All else is compressed already, or might be.
function compresses(contentType: string | undefined): boolean {
  if (contentType === "application/json") return true;
  const [type = ""] = (contentType ?? "").toLowerCase().split(";");
  return TEXTUAL.test(type.trim());
}

const TEXTUAL =
  /^(?:text\/[^/]+|[^/]+\/[^/]+\+(?:json|xml|yaml)|application\/(?:json|xml|yaml|javascript|x-ndjson|wasm|x-tar))$/;
