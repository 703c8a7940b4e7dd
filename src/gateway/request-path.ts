// A request path cut at its slashes. It is cut before anything is decoded, so
// that an encoded slash never decides which route a request takes, and each
// part is decoded at most once (RFC 3986, section 2.4).
import { malformedRequest } from "../kernel/errors.js";
import { normalLiteral } from "./http-rule.js";
import { decodePercent, hasControl } from "./percent.js";

const SLASH = 47;
const PERCENT = 37;
const DOT = 46;

/** A path cut into segments, reused from one request to the next: it is read before the next is made. */
export interface RequestPath {
  /** The path as received, without query. */
  raw: string;
  /** How many segments it has. */
  count: number;
  /** Where each segment begins. */
  readonly starts: number[];
  /** Where each segment ends, exclusive. */
  readonly ends: number[];
  /** Whether there is a percent sign anywhere. */
  escaped: boolean;
  /** Whether some segment is empty, the last one not counting. */
  emptyInside: boolean;
  /** Whether the path ends in a slash. */
  trailingSlash: boolean;
}

/** An empty {@link RequestPath} to be filled by {@link cutPath}. */
export function newRequestPath(): RequestPath {
  return { raw: "", count: 0, starts: [], ends: [], escaped: false, emptyInside: false, trailingSlash: false };
}

/**
 * Fills `into` with the segments of `raw`, which begins with a slash.
 *
 * @throws ApiError INVALID_ARGUMENT for malformed escapes, bytes that are not UTF-8, control
 * characters, characters that ought to be escaped, and segments `.` and `..`, however written.
 */
export function cutPath(raw: string, into: RequestPath): void {
  let count = 0;
  let start = 1;
  let escaped = false;
  let emptyInside = false;
  const length = raw.length;
  for (let i = 1; i <= length; i++) {
    const code = i === length ? SLASH : raw.charCodeAt(i);
    if (code === SLASH) {
      if (i === start) {
        if (i < length) emptyInside = true;
      } else if (raw.charCodeAt(start) === DOT && isDots(raw.slice(start, i))) {
        throw malformedRequest("path: segments . and .. are not allowed");
      }
      into.starts[count] = start;
      into.ends[count] = i;
      count++;
      start = i + 1;
    } else if (code === PERCENT) {
      escaped = true;
    } else if (code <= 32 || code >= 127) {
      throw malformedRequest("path: characters outside printable ASCII must be percent-encoded");
    }
  }
  into.raw = raw;
  into.count = count;
  into.escaped = escaped;
  into.emptyInside = emptyInside;
  into.trailingSlash = length > 1 && raw.charCodeAt(length - 1) === SLASH;
  if (escaped) for (let i = 0; i < count; i++) decodedPart(raw.slice(into.starts[i], into.ends[i]));
}

/** The segment at `index` in the form in which literals are compared. */
export function segmentKey(path: RequestPath, index: number): string {
  const text = path.raw.slice(path.starts[index], path.ends[index]);
  return path.escaped ? normalLiteral(text) : text;
}

/**
 * The decoded text of segments `first` to `last`. An escaped slash becomes one like any other, so a
 * client that escapes a whole uid reaches what a client that does not reaches.
 *
 * @throws ApiError INVALID_ARGUMENT when decoding brings forth an empty segment or one of dots.
 */
export function captureOf(path: RequestPath, first: number, last: number): string {
  const raw = path.raw.slice(path.starts[first], path.ends[last]);
  if (!path.escaped) return raw;
  const text = decodedPart(raw);
  for (const part of text.split("/")) {
    if (part === "") throw malformedRequest("path: a segment is empty");
    if (isDots(part)) throw malformedRequest("path: segments . and .. are not allowed");
  }
  return text;
}

function decodedPart(raw: string): string {
  const text = decodePercent(raw);
  if (text === undefined) throw malformedRequest("path: a percent escape is malformed or not UTF-8");
  if (hasControl(text)) throw malformedRequest("path: control characters are not allowed");
  if (isDots(text)) throw malformedRequest("path: segments . and .. are not allowed");
  return text;
}

function isDots(text: string): boolean {
  return text === "." || text === "..";
}
