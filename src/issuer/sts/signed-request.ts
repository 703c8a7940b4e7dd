// An HTTP request as text, and the signature on it. Read strictly: whatever one
// reader would take another way than the next is no request.
const MAX_LENGTH = 16_384;
const PRINTABLE = /^[ -~]*$/;
const REQUEST_LINE = /^([A-Z]+) (\S+) HTTP\/1\.[01]$/;
const FIELD_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;

/** A request without a body. */
export interface SignedRequest {
  readonly method: string;
  /** In origin or absolute form (RFC 9112, section 3.2). */
  readonly target: string;
  /** Names in lower case, values without the blanks around them; in their order, repeated ones too. */
  readonly headers: readonly (readonly [name: string, value: string])[];
}

/**
 * Reads a request from base64url with padding (RFC 4648, section 5), at most 16,384 characters of it.
 * Lines end with LF or CRLF; after the empty one there is nothing but more of them.
 *
 * @returns undefined when it is not that
 */
export function readSignedRequest(bearer: string): SignedRequest | undefined {
  const lines = decoded(bearer)?.split(/\r?\n/);
  const end = lines?.indexOf("") ?? -1;
  // A line break ends each line, the empty one as well.
  if (lines === undefined || end < 1 || end === lines.length - 1) return undefined;
  if (!lines.every((line, i) => PRINTABLE.test(line) && (i < end || line === ""))) return undefined;
  const [, method, target] = REQUEST_LINE.exec(lines[0] ?? "") ?? [];
  if (method === undefined || target === undefined) return undefined;
  const headers: [string, string][] = [];
  for (const line of lines.slice(1, end)) {
    const colon = line.indexOf(":");
    const name = line.slice(0, Math.max(colon, 0));
    if (!FIELD_NAME.test(name)) return undefined;
    headers.push([name.toLowerCase(), line.slice(colon + 1).trim()]);
  }
  return { method, target, headers };
}

// Decoders take both alphabets and any padding; only the one spelling comes back the same.
function decoded(bearer: string): string | undefined {
  if (bearer.length > MAX_LENGTH) return undefined;
  const bytes = Buffer.from(bearer, "base64url");
  const spelling = bytes.toString("base64").replaceAll("+", "-").replaceAll("/", "_");
  return spelling === bearer ? bytes.toString("latin1") : undefined;
}

const ALGORITHM = "AWS4-HMAC-SHA256 ";
const PARTS: Readonly<Record<string, RegExp>> = {
  Credential: /^[A-Za-z0-9]{16,128}\/[0-9]{8}\/[a-z0-9-]+\/sts\/aws4_request$/,
  SignedHeaders: /^[a-z0-9-]+(?:;[a-z0-9-]+)*$/,
  Signature: /^[0-9a-f]{64}$/,
};

/**
 * The names of the headers that an Authorization header of AWS Signature Version 4 says are signed, for
 * the service `sts`.
 *
 * @returns undefined when it is not such a header, each of its three parts once
 */
export function signedHeadersOf(authorization: string): readonly string[] | undefined {
  if (!authorization.startsWith(ALGORITHM)) return undefined;
  const parts = authorization.slice(ALGORITHM.length).split(",");
  const given = new Map(parts.map((part) => splitOnce(part.trim())));
  const whole = parts.length === 3 && Object.entries(PARTS).every(([name, form]) => form.test(given.get(name) ?? ""));
  return whole ? given.get("SignedHeaders")?.split(";") : undefined;
}

function splitOnce(part: string): [string, string] {
  const equals = part.indexOf("=");
  return [part.slice(0, Math.max(equals, 0)), part.slice(equals + 1)];
}
