// A request path cut at its slashes. It is cut before anything is decoded, so
// that an encoded slash never decides which route a request takes, and each
// part is decoded at most once (RFC 3986, section 2.4).
import { invalidRequest } from "../../kernel/errors.js";
import { normalLiteral, type TemplateVariable } from "../http/http-rule.js";

/** How many segments a path may have: more than any uid and what may stand around it. */
const MAX_PATH_SEGMENTS = 256;

/** How long a path may be, in characters as sent: a uid of the greatest depth has about a third of it. */
const MAX_PATH_LENGTH = 4096;

const SLASH = 47;
const PERCENT = 37;
const DOT = 46;
const ESCAPED_SLASH = /%2[Ff]/g;

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
  /** What {@link segmentKey} has worked out, and for which end of the segment. */
  readonly keys: { end: number; text: string }[];
  /** Whether there is a percent sign anywhere. */
  escaped: boolean;
  /** Whether some segment is empty, the last one not counting. Then nothing else is filled in. */
  emptyInside: boolean;
  /** Whether the path ends in a slash. */
  trailingSlash: boolean;
}

/** An empty {@link RequestPath} to be filled by {@link cutPath}. */
export function newRequestPath(): RequestPath {
  return {
    raw: "",
    count: 0,
    starts: [],
    ends: [],
    keys: [],
    escaped: false,
    emptyInside: false,
    trailingSlash: false,
  };
}

/**
 * Fills `into` with the segments of `raw`, which begins with a slash.
 *
 * @throws ApiError INVALID_ARGUMENT for malformed escapes, bytes that are not UTF-8, control
 * characters, characters that ought to be escaped, segments `.` and `..`, however written, and for
 * paths beyond {@link MAX_PATH_LENGTH} and {@link MAX_PATH_SEGMENTS}.
 */
export function cutPath(raw: string, into: RequestPath): void {
  if (raw.length > MAX_PATH_LENGTH) throw invalidRequest(`path: at most ${MAX_PATH_LENGTH} characters are allowed`);
  let count = 0;
  let start = 1;
  let escaped = false;
  into.emptyInside = false;
  const length = raw.length;
  for (let i = 1; i <= length; i++) {
    const code = i === length ? SLASH : raw.charCodeAt(i);
    if (code === SLASH) {
      if (i === start) {
        if (i === length) break;
        into.emptyInside = true;
        return;
      }
      if (raw.charCodeAt(start) === DOT) rejectDots(raw.slice(start, i));
      if (count === MAX_PATH_SEGMENTS) {
        throw invalidRequest(`path: at most ${MAX_PATH_SEGMENTS} segments are allowed`);
      }
      into.starts[count] = start;
      into.ends[count] = i;
      count++;
      start = i + 1;
    } else if (code === PERCENT) {
      escaped = true;
    } else if (code <= 32 || code >= 127) {
      throw invalidRequest("path: characters outside printable ASCII must be percent-encoded");
    }
  }
  into.raw = raw;
  into.count = count;
  into.escaped = escaped;
  into.keys.length = 0;
  into.trailingSlash = length > 1 && raw.charCodeAt(length - 1) === SLASH;
  if (escaped) for (let i = 0; i < count; i++) decodePart(raw.slice(into.starts[i], into.ends[i]));
}

/** The segment at `index` in the form in which literals are compared. */
export function segmentKey(path: RequestPath, index: number): string {
  const end = path.ends[index] ?? 0;
  if (!path.escaped) return path.raw.slice(path.starts[index], end);
  let key = path.keys[index];
  if (key?.end !== end) {
    key = { end, text: normalLiteral(path.raw.slice(path.starts[index], end)) };
    path.keys[index] = key;
  }
  return key.text;
}

/**
 * The text of segments `first` to `last`, decoded. Of a variable with `**` an escaped slash becomes one like any other,
 * so a client that escapes a whole uid reaches what a client that does not reaches. In one with a fixed number of
 * segments it stays escaped, as `%2F`, so that the value has as many segments as the path has (google/api/http.proto).
 *
 * @throws ApiError INVALID_ARGUMENT when decoding brings forth a segment of dots, or in a variable with `**` an empty one.
 */
export function captureOf(path: RequestPath, first: number, last: number, span: TemplateVariable["span"]): string {
  const raw = path.raw.slice(path.starts[first], path.ends[last]);
  if (!path.escaped) return raw;
  const text = decodePart(raw);
  for (const part of text.split("/")) {
    if (part === "" && span === "any") throw invalidRequest("path: a segment is empty");
    rejectDots(part);
  }
  return span === "fixed" ? decodePart(raw.replace(ESCAPED_SLASH, "%252F")) : text;
}

function decodePart(raw: string): string {
  const text = decodePercent(raw);
  if (text === undefined) throw invalidRequest("path: a percent escape is malformed or not UTF-8");
  if (hasControl(text)) throw invalidRequest("path: control characters are not allowed");
  return rejectDots(text);
}

/**
 * Returns a segment that is not one of dots.
 *
 * @throws ApiError INVALID_ARGUMENT for `.` and `..`, which servers and proxies resolve differently.
 */
export function rejectDots(segment: string): string {
  if (segment === "." || segment === "..") throw invalidRequest("path: segments . and .. are not allowed");
  return segment;
}

/**
 * `raw` with its escapes undone, and undefined when an escape is malformed or the bytes are not
 * UTF-8.
 */
function decodePercent(raw: string): string | undefined {
  if (!raw.includes("%")) return raw;
  try {
    return decodeURIComponent(raw);
  } catch {
    return undefined;
  }
}

/** As {@link decodePercent}, with `+` for a space, the way query strings are written. */
export function decodeQueryPart(raw: string): string | undefined {
  return decodePercent(raw.includes("+") ? raw.replaceAll("+", " ") : raw);
}

/** Whether `text` holds a byte that may not stand unescaped in a path or query: controls, space, non-ASCII. */
export function hasRawUnsafe(text: string): boolean {
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code <= 32 || code >= 127) return true;
  }
  return false;
}

/** Whether `text` holds a C0 control character or DEL. */
function hasControl(text: string): boolean {
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code < 32 || code === 127) return true;
  }
  return false;
}
