// Decoding of percent escapes (RFC 3986, section 2.1): strict, once, and after
// everything has been split at its separators.

/**
 * `raw` with its escapes undone, and undefined when an escape is malformed or the bytes are not
 * UTF-8.
 */
export function decodePercent(raw: string): string | undefined {
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
export function hasControl(text: string): boolean {
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code < 32 || code === 127) return true;
  }
  return false;
}
