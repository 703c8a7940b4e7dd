// Documents that stay the same while the process runs: loaded, tagged and compressed once, and sent to all callers from
// the same bytes.
import { sha256 } from "../../kernel/digest.js";
import { type Coding, encodeBytes, MIN_COMPRESSED_BYTES, selectCoding } from "./content-negotiation.js";
import { joinField } from "./http-message.js";
import type { Request } from "./request.js";
import { sendBody, sendEmpty, sendJson } from "./send.js";

export interface StaticDocumentOptions {
  readonly contentType: string;
  /** Header fields by lower-case name, such as `cache-control`. */
  readonly headers: Readonly<Record<string, string>>;
  /** Loads the content; called at the first request, and again if it failed. */
  readonly load: () => string | Buffer | Promise<string>;
  /**
   * Loads the content in a coding; it is compressed at the first request unless given. When it throws, the document is
   * sent uncompressed.
   */
  readonly loadEncoded?: (coding: Coding) => Buffer;
}

/** The bytes in one coding, with an ETag of their own (RFC 9110, section 8.8.3.3). */
interface Variant {
  readonly bytes: Buffer;
  readonly etag: string;
  readonly coding: Coding | undefined;
}

/** A compressed form is kept if it saves at least a tenth, which it does not for compressed formats. */
const WORTHWHILE = 0.9;

const CODING = "accept-encoding";

/** The highest qualities of Brotli save a tenth more and take ten times as long, while the first caller waits. */
const QUALITY = { gzip: 9, br: 7 };

/** A document that is sent to callers. */
export type StaticDocument = ReturnType<typeof createStaticDocument>;

/** Creates a document, which is loaded at the first request. */
export function createStaticDocument({ contentType, headers, load, loadEncoded }: StaticDocumentOptions) {
  let plain: Promise<Variant> | undefined;
  const coded = new Map<Coding, Promise<Variant>>();

  async function read(): Promise<Variant> {
    const content = await load();
    const bytes = typeof content === "string" ? Buffer.from(content) : content;
    return { bytes, etag: `"${sha256(bytes).toString("base64url")}"`, coding: undefined };
  }

  function loadOnce(): Promise<Variant> {
    plain ??= read().catch((error) => {
      plain = undefined;
      throw error;
    });
    return plain;
  }

  async function encode(coding: Coding, bytes: Buffer): Promise<Buffer> {
    return loadEncoded?.(coding) ?? encodeBytes(coding, bytes, QUALITY);
  }

  // Concurrent callers share one compression.
  function encodeOnce(coding: Coding, from: Variant): Promise<Variant> {
    let variant = coded.get(coding);
    if (variant === undefined) {
      variant = encode(coding, from.bytes).then(
        (bytes) =>
          bytes.length > from.bytes.length * WORTHWHILE
            ? from
            : { bytes, etag: `${from.etag.slice(0, -1)}-${coding}"`, coding },
        // The uncompressed form is a correct response as well.
        () => from,
      );
      coded.set(coding, variant);
    }
    return variant;
  }

  return {
    /**
     * Answers GET or HEAD in the coding that the caller prefers, or with 304 when the caller has the document.
     *
     * @throws whatever `load` throws; then nothing was sent
     */
    async send(request: Request): Promise<void> {
      const { method, fields: requestHeaders } = request;
      const whole = await loadOnce();
      const compressible = whole.bytes.length >= MIN_COMPRESSED_BYTES;
      const preferred = compressible ? selectCoding(joinField(requestHeaders["accept-encoding"])) : undefined;
      const { bytes, etag, coding } = preferred === undefined ? whole : await encodeOnce(preferred, whole);
      const fields = {
        ...headers,
        etag,
        ...(compressible && { vary: headers.vary === undefined ? CODING : `${headers.vary}, ${CODING}` }),
        ...(coding !== undefined && { "content-encoding": coding }),
      };
      if (hasTag(requestHeaders["if-none-match"], etag)) {
        const { "content-encoding": _, ...kept } = fields;
        sendEmpty(request, 304, kept);
      } else if (method === "HEAD") {
        const described = { "content-type": contentType, "content-length": bytes.length };
        sendEmpty(request, 200, { ...fields, ...described, "x-content-type-options": "nosniff" });
      } else {
        sendBody(request, 200, contentType, bytes, fields);
      }
    },
  };
}

// RFC 9110, section 13.1.2: a list of tags, weak or strong, or "*". The tags of this service have no comma.
function hasTag(ifNoneMatch: string | undefined, etag: string): boolean {
  if (ifNoneMatch === undefined) return false;
  return ifNoneMatch.split(",").some((tag) => ["*", etag, `W/${etag}`].includes(tag.trim()));
}

/**
 * Responses with a document.
 *
 * @param document undefined for a path without one
 * @returns whether it answered
 */
export function answerWith(document: StaticDocument | undefined, request: Request): boolean {
  if (document === undefined) return false;
  const { method } = request;
  if (method !== "GET" && method !== "HEAD") {
    sendJson(request, 405, '{"status":"method not allowed"}', { allow: "GET, HEAD" });
    return true;
  }
  // A document that cannot be loaded must not end the process.
  document.send(request).catch(() => sendJson(request, 500, '{"status":"unavailable"}'));
  return true;
}
