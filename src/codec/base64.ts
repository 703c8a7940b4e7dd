const INVALID = -1;
const PADDING = 64;

const VALUES = new Int8Array(256).fill(INVALID);
for (const [value, char] of [..."ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/="].entries())
  VALUES[char.charCodeAt(0)] = value;

/**
 * Decodes base64 that may consist of padded chunks (RFC 4648, section 4). `Buffer.from` stops at the first padding and
 * skips invalid characters.
 *
 * @returns undefined for anything else
 */
export function decodePaddedBase64(text: Uint8Array): Buffer | undefined {
  if (text.length % 4 !== 0) return undefined;
  const bytes = Buffer.allocUnsafe((text.length / 4) * 3);
  let size = 0;
  for (let at = 0; at < text.length; at += 4) {
    const first = valueAt(text, at);
    const second = valueAt(text, at + 1);
    const third = valueAt(text, at + 2);
    const fourth = valueAt(text, at + 3);
    if ((first | second | third | fourth) < 0 || first === PADDING || second === PADDING) return undefined;
    if (third === PADDING && fourth !== PADDING) return undefined;
    bytes[size++] = (first << 2) | (second >> 4);
    if (third === PADDING) continue;
    bytes[size++] = (second << 4) | (third >> 2);
    if (fourth !== PADDING) bytes[size++] = (third << 6) | fourth;
  }
  return bytes.subarray(0, size);
}

function valueAt(text: Uint8Array, at: number): number {
  return VALUES[text[at] as number] as number;
}
