// Decompresses requests of every protocol.
import { promisify } from "node:util";
import { brotliDecompress, gunzip } from "node:zlib";
import { type ApiError, invalidArgument, invalidRequest, resourceExhausted } from "../../kernel/errors.js";
import { defaultLimits } from "./limits/limits.js";

/** A coding of requests. RPC knows gzip alone. */
export type RequestCoding = "gzip" | "br";

/** What errors call the bytes that were compressed: the body of a request, or a message within it. */
export type CompressedPart = "body" | "message";

/**
 * Bytes per step of decompression. Each step takes a tick of the event loop: at the default of 16 KiB, 4 MiB take 256.
 */
const INFLATE_CHUNK = 256 * 1024;

/** Up to this size, in bytes, it does not matter how much a message expands. */
const FREE_BYTES = 256 * 1024;

type Inflate = (bytes: Uint8Array, options: { maxOutputLength: number; chunkSize: number }) => Promise<Uint8Array>;

const INFLATE: Readonly<Record<RequestCoding, Inflate>> = {
  gzip: promisify(gunzip),
  br: promisify(brotliDecompress),
};

/**
 * Decompresses a body or a message. What it expands to must be within the limit of the method, and above 256 KiB within
 * a hundred times its compressed size.
 *
 * @param limit the most bytes that the method takes
 * @param charge charges the bytes that it may expand to
 * @throws ApiError RESOURCE_EXHAUSTED that says which of the two rules is broken, INVALID_ARGUMENT for broken
 * compression; what `charge` throws
 */
export async function inflate(
  part: CompressedPart,
  coding: RequestCoding,
  bytes: Uint8Array,
  limit: number,
  charge: (bytes: number) => void,
): Promise<Uint8Array> {
  if (bytes.length === 0) return bytes;
  const most = Math.min(limit, Math.max(bytes.length * defaultLimits.inflateRatio, FREE_BYTES));
  charge(most);
  try {
    return await INFLATE[coding](bytes, { maxOutputLength: most, chunkSize: Math.min(most, INFLATE_CHUNK) });
  } catch (error) {
    if (!(error instanceof RangeError && "code" in error && error.code === "ERR_BUFFER_TOO_LARGE"))
      throw describeBroken(part, coding);
    throw most === limit ? tooLarge(part, limit) : expandsTooMuch(part);
  }
}

/** RESOURCE_EXHAUSTED: a body or a message is larger than the method allows. */
export function tooLarge(part: CompressedPart, limit: number): ApiError {
  return resourceExhausted(`${part}: must be at most ${limit} bytes`);
}

function expandsTooMuch(part: CompressedPart): ApiError {
  return resourceExhausted(`${part}: must not expand to more than ${defaultLimits.inflateRatio} times its size`);
}

// A message is no field of the request.
function describeBroken(part: CompressedPart, coding: RequestCoding): ApiError {
  return part === "body"
    ? invalidArgument({ field: "body", rule: `is not valid ${coding}` })
    : invalidRequest(`the message is not valid ${coding}`);
}
