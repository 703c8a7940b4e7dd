// Documents that stay the same while the process runs: read or made once, compressed once, tagged, and sent to
// everybody from the same bytes.
import { createHash } from "node:crypto";
import { promisify } from "node:util";
import { brotliCompress, constants, gzip } from "node:zlib";
import { type Coding, MIN_COMPRESSED_BYTES, selectCoding } from "./content-negotiation.js";
import type { HttpResponse } from "./http-message.js";
import { sendBody, sendEmpty, sendJson } from "./send.js";

/** The document. */
export interface StaticDocumentOptions {
  readonly contentType: string;
  /** Header fields by lower-case name, such as `cache-control`. */
  readonly headers: Readonly<Record<string, string>>;
  /** Makes the content; called when it is first asked for, and again if it failed. */
  readonly load: () => string | Buffer | Promise<string>;
}

/** The bytes of one coding; each has a tag of its own (RFC 9110, section 8.8.3.3). */
interface Variant {
  readonly bytes: Buffer;
  readonly etag: string;
  readonly coding: Coding | undefined;
}

/** A coded form is kept when it saves at least a tenth; what is compressed already gains nothing. */
const WORTHWHILE = 0.9;

const CODING = "accept-encoding";

const gzipAsync = promisify(gzip);
const brotliAsync = promisify(brotliCompress);

const encode: Readonly<Record<Coding, (bytes: Buffer) => Promise<Buffer>>> = {
  gzip: (bytes) => gzipAsync(bytes, { level: 9 }),
  // The last steps of brotli's scale save a tenth more and take ten times as long, while the first caller waits.
  br: (bytes) =>
    brotliAsync(bytes, {
      params: { [constants.BROTLI_PARAM_QUALITY]: 7, [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length },
    }),
};

/** A document that can be sent. */
export type StaticDocument = ReturnType<typeof createStaticDocument>;

/** Creates a document; nothing is done until it is asked for. */
export function createStaticDocument({ contentType, headers, load }: StaticDocumentOptions) {
  let plain: Promise<Variant> | undefined;
  const coded = new Map<Coding, Promise<Variant>>();

  async function read(): Promise<Variant> {
    const content = await load();
    const bytes = typeof content === "string" ? Buffer.from(content) : content;
    return { bytes, etag: `"${createHash("sha256").update(bytes).digest("base64url")}"`, coding: undefined };
  }

  function loadOnce(): Promise<Variant> {
    plain ??= read().catch((error) => {
      plain = undefined;
      throw error;
    });
    return plain;
  }

  // Made once, however many ask while it is being made.
  function encodeOnce(coding: Coding, from: Variant): Promise<Variant> {
    let variant = coded.get(coding);
    if (variant === undefined) {
      variant = encode[coding](from.bytes).then(
        (bytes) =>
          bytes.length > from.bytes.length * WORTHWHILE
            ? from
            : { bytes, etag: `${from.etag.slice(0, -1)}-${coding}"`, coding },
        // The plain form is right as well.
        () => from,
      );
      coded.set(coding, variant);
    }
    return variant;
  }

  return {
    /**
     * Answers GET or HEAD, in the coding the caller prefers, or with 304 when the caller has it.
     *
     * @throws whatever `load` throws; nothing is sent then.
     */
    async send(res: HttpResponse): Promise<void> {
      const { method, headers: requestHeaders } = res.req;
      const whole = await loadOnce();
      const compressible = whole.bytes.length >= MIN_COMPRESSED_BYTES;
      const preferred = compressible ? selectCoding(headerText(requestHeaders["accept-encoding"])) : undefined;
      const { bytes, etag, coding } = preferred === undefined ? whole : await encodeOnce(preferred, whole);
      const fields = {
        ...headers,
        etag,
        ...(compressible && { vary: headers.vary === undefined ? CODING : `${headers.vary}, ${CODING}` }),
        ...(coding !== undefined && { "content-encoding": coding }),
      };
      if (hasTag(requestHeaders["if-none-match"], etag)) {
        const { "content-encoding": _, ...kept } = fields;
        sendEmpty(res, 304, kept);
      } else if (method === "HEAD") {
        const described = { "content-type": contentType, "content-length": bytes.length };
        sendEmpty(res, 200, { ...fields, ...described, "x-content-type-options": "nosniff" });
      } else {
        sendBody(res, 200, contentType, bytes, fields);
      }
    },
  };
}

function headerText(value: string | readonly string[] | undefined): string | undefined {
  return typeof value === "object" ? value.join(", ") : value;
}

// RFC 9110, section 13.1.2: any of a list, weak or not, or whatever there is. Tags made here hold no comma.
function hasTag(ifNoneMatch: string | undefined, etag: string): boolean {
  if (ifNoneMatch === undefined) return false;
  return ifNoneMatch.split(",").some((tag) => ["*", etag, `W/${etag}`].includes(tag.trim()));
}

/**
 * Answers with a document.
 *
 * @param document undefined where the path has none
 * @returns whether it answered
 */
export function answerWith(document: StaticDocument | undefined, method: string, res: HttpResponse): boolean {
  if (document === undefined) return false;
  if (method !== "GET" && method !== "HEAD") {
    sendJson(res, 405, '{"status":"method not allowed"}', { allow: "GET, HEAD" });
    return true;
  }
  // A document that cannot be made or a file that is gone must not cost the process.
  document.send(res).catch(() => sendJson(res, 500, '{"status":"unavailable"}'));
  return true;
}
