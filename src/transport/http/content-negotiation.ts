// Content negotiation and compression of responses (RFC 9110, section 12).
import { promisify } from "node:util";
import { brotliCompress, constants, gzip } from "node:zlib";
import type { ResponseHeaders } from "./send.js";

/** The smallest body that is compressed, in bytes. */
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
 * Compresses a body with the coding that the caller prefers, and sets the headers. Returns it unchanged if its type
 * does not compress well or the result is not smaller.
 */
export async function compress(
  body: string | Uint8Array,
  contentType: string | undefined,
  acceptEncoding: string | undefined,
  headers: ResponseHeaders,
): Promise<string | Uint8Array> {
  if (!compresses(contentType)) return body;
  addVary(headers, "accept-encoding");
  const coding = selectCoding(acceptEncoding);
  if (coding === undefined) return body;
  const plain = typeof body === "string" ? Buffer.from(body) : body;
  // The default quality of Brotli is for content that is compressed once and served many times.
  const coded = await encodeBytes(coding, plain, { gzip: constants.Z_DEFAULT_COMPRESSION, br: 4 });
  if (coded.length >= plain.length) return plain;
  headers["content-encoding"] = coding;
  return coded;
}

/** Compresses bytes in libuv's thread pool, with the given quality of each coding. */
export function encodeBytes(coding: Coding, bytes: Uint8Array, quality: Record<Coding, number>): Promise<Buffer> {
  if (coding === "gzip") return gzipAsync(bytes, { level: quality.gzip });
  const { BROTLI_PARAM_QUALITY, BROTLI_PARAM_SIZE_HINT } = constants;
  return brotliAsync(bytes, { params: { [BROTLI_PARAM_QUALITY]: quality.br, [BROTLI_PARAM_SIZE_HINT]: bytes.length } });
}

/** Adds a field name to a `vary` header. */
function addVary(headers: ResponseHeaders, name: string): void {
  const { vary } = headers;
  headers.vary = vary === undefined ? name : `${vary}, ${name}`;
}

// Text and similar formats. Other types may be compressed already.
function compresses(contentType: string | undefined): boolean {
  if (contentType === "application/json") return true;
  const [type = ""] = (contentType ?? "").toLowerCase().split(";");
  return TEXTUAL.test(type.trim());
}

const TEXTUAL =
  /^(?:text\/[^/]+|[^/]+\/[^/]+\+(?:json|xml|yaml)|application\/(?:json|xml|yaml|javascript|x-ndjson|wasm|x-tar))$/;

/** A content coding of responses. */
export type Coding = "br" | "gzip";

/**
 * Selects the coding of a response; undefined for none. A client that accepts none of the codings gets the response
 * without one, not an error.
 */
export function selectCoding(acceptEncoding: string | undefined): Coding | undefined {
  if (acceptEncoding === undefined) return undefined;
  const weights = parseWeights(acceptEncoding);
  const other = weights.get("*") ?? 0;
  const br = weights.get("br") ?? other;
  const gzip = weights.get("gzip") ?? weights.get("x-gzip") ?? other;
  const best = Math.max(br, gzip);
  // If the client does not name `identity`, any coding that it names is preferred.
  const plain = weights.get("identity") ?? other;
  if (best === 0 || best < plain) return undefined;
  return br === best ? "br" : "gzip";
}

/** Whether to send a stream as events: `Accept` names them, with a weight that is not below that of lines. */
export function prefersEvents(accept: string | undefined): boolean {
  if (accept === undefined) return false;
  const weights = parseWeights(accept);
  const events = weights.get("text/event-stream") ?? 0;
  return events > 0 && events >= (weights.get("application/x-ndjson") ?? 0);
}

/** Whether to send a page as JSON: `Accept` names it, with a higher weight than HTML, which browsers name. */
export function prefersJson(accept: string | undefined): boolean {
  if (accept === undefined) return false;
  const weights = parseWeights(accept);
  return (weights.get("application/json") ?? 0) > (weights.get("text/html") ?? 0);
}

/** Whether `Accept` names HTML, as browsers do, with a weight that is not below that of JSON. */
export function prefersHtml(accept: string | undefined): boolean {
  if (accept === undefined) return false;
  const weights = parseWeights(accept);
  const html = weights.get("text/html") ?? 0;
  return html > 0 && html >= (weights.get("application/json") ?? 0);
}

// An entry with a malformed weight is ignored; of two with the same name, the greater weight counts.
function parseWeights(list: string): Map<string, number> {
  const weights = new Map<string, number>();
  for (const entry of list.toLowerCase().split(",")) {
    const [name = "", ...parameters] = entry.split(";").map((part) => part.trim());
    const q = parameters.find((parameter) => parameter.startsWith("q="))?.slice(2);
    if (name === "" || (q !== undefined && !WEIGHT.test(q))) continue;
    const weight = q === undefined ? 1 : Number(q);
    weights.set(name, Math.max(weight, weights.get(name) ?? 0));
  }
  return weights;
}

const WEIGHT = /^(?:0(?:\.\d{0,3})?|1(?:\.0{0,3})?)$/;
