// Splits a request path at its slashes. It is split before anything is decoded, so that an encoded slash never changes
// the route of a request, and each segment is decoded at most once (RFC 3986, section 2.4).
import { invalidRequest } from "../../kernel/errors.js";
import { normalizeLiteral, type TemplateVariable } from "../http/http-rule.js";

/** How many segments a path may have: more than the deepest uid and the segments around it. */
const MAX_PATH_SEGMENTS = 256;

/** How long a path may be, in characters as sent: about three times the longest uid. */
const MAX_PATH_LENGTH = 4096;

const SLASH = 47;
const PERCENT = 37;
const DOT = 46;
const ESCAPED_SLASH = /%2[Ff]/g;

/** A path split into segments. One object is reused for all requests, because it is read synchronously. */
export interface RequestPath {
  /** The path as received, without query. */
  raw: string;
  /** How many segments it has. */
  count: number;
  /** The start of each segment. */
  readonly starts: number[];
  /** The end of each segment, exclusive. */
  readonly ends: number[];
  /** The results of {@link segmentKey}, with the end of the segment that they are for. */
  readonly keys: { end: number; text: string }[];
  /** Whether the path has a percent sign. */
  escaped: boolean;
  /** Whether a segment other than the last one is empty. Then the other properties are not set. */
  emptyInside: boolean;
  /** Whether the path ends in a slash. */
  trailingSlash: boolean;
}

/** Creates an empty {@link RequestPath} for {@link splitPath}. */
export function createRequestPath(): RequestPath {
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
 * Splits `raw`, which begins with a slash, into the segments of `into`.
 *
 * @throws ApiError INVALID_ARGUMENT for malformed escapes, bytes that are not UTF-8, control characters, characters
 * that must be escaped, the segments `.` and `..`, escaped or not, and paths beyond {@link MAX_PATH_LENGTH} and {@link
 * MAX_PATH_SEGMENTS}
 */
export function splitPath(raw: string, into: RequestPath): void {
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
      if (raw.charCodeAt(start) === DOT) rejectDotSegment(raw.slice(start, i));
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

/** The segment at `index`, normalized for the comparison with literals. */
export function segmentKey(path: RequestPath, index: number): string {
  const end = path.ends[index] ?? 0;
  if (!path.escaped) return path.raw.slice(path.starts[index], end);
  let key = path.keys[index];
  if (key?.end !== end) {
    key = { end, text: normalizeLiteral(path.raw.slice(path.starts[index], end)) };
    path.keys[index] = key;
  }
  return key.text;
}

/**
 * Decodes the segments `first` to `last`. In a variable with `**` an escaped slash is decoded, so that clients may
 * escape a whole uid or not. In one with a fixed number of segments it stays `%2F`, so that the value has as many
 * segments as the path (google/api/http.proto).
 *
 * @throws ApiError INVALID_ARGUMENT when decoding results in a dot segment or, in a variable with `**`, an empty one
 */
export function captureOf(path: RequestPath, first: number, last: number, span: TemplateVariable["span"]): string {
  const raw = path.raw.slice(path.starts[first], path.ends[last]);
  if (!path.escaped) return raw;
  const text = decodePart(raw);
  for (const part of text.split("/")) {
    if (part === "" && span === "any") throw invalidRequest("path: a segment is empty");
    rejectDotSegment(part);
  }
  return span === "fixed" ? decodePart(raw.replace(ESCAPED_SLASH, "%252F")) : text;
}

function decodePart(raw: string): string {
  const text = decodePercent(raw);
  if (text === undefined) throw invalidRequest("path: a percent escape is malformed or not UTF-8");
  if (hasControl(text)) throw invalidRequest("path: control characters are not allowed");
  return rejectDotSegment(text);
}

/**
 * Returns the segment unless it is a dot segment.
 *
 * @throws ApiError INVALID_ARGUMENT for `.` and `..`, which servers and proxies resolve differently
 */
export function rejectDotSegment(segment: string): string {
  if (segment === "." || segment === "..") throw invalidRequest("path: segments . and .. are not allowed");
  return segment;
}

/** Decodes percent-encoding; undefined when an escape is malformed or the bytes are not UTF-8. */
function decodePercent(raw: string): string | undefined {
  if (!raw.includes("%")) return raw;
  try {
    return decodeURIComponent(raw);
  } catch {
    return undefined;
  }
}

/** Decodes as {@link decodePercent} does, and `+` to a space, as in query strings. */
export function decodeQueryPart(raw: string): string | undefined {
  return decodePercent(raw.includes("+") ? raw.replaceAll("+", " ") : raw);
}

/** Whether `text` has a character that must be escaped in a path or query: controls, space, non-ASCII. */
export function hasRawUnsafe(text: string): boolean {
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code <= 32 || code >= 127) return true;
  }
  return false;
}

/** Whether `text` has a C0 control character or DEL. */
function hasControl(text: string): boolean {
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code < 32 || code === 127) return true;
  }
  return false;
}
