/** The alphabet of base32 (RFC 4648, section 6). */
const ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

/**
 * Encodes bytes in base32 (RFC 4648, section 6) without padding.
 *
 * @param bytes a multiple of five, so that the digits hold all bits
 */
export function encodeBase32(bytes: Uint8Array): string {
  const bits = [...bytes].map((byte) => byte.toString(2).padStart(8, "0")).join("");
  return bits.replace(/.{5}/g, (five) => ALPHABET.charAt(Number.parseInt(five, 2)));
}
