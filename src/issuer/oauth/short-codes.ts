// Codes that people read in one place and type in another.
import { createHash, randomInt } from "node:crypto";
import { encodeBase32 } from "../../kernel/base32.js";

/** RFC 8628, section 6.1: consonants, so that no code is a word; and none that looks like a digit. */
const CONSONANTS = "BCDFGHJKLMNPQRSTVWXZ";
const LENGTH = 8;

/** A new code of the device flow: 8 letters, of which there are 20. */
export function newUserCode(): string {
  return Array.from({ length: LENGTH }, () => CONSONANTS[randomInt(CONSONANTS.length)]).join("");
}

/** Whether `code`, as {@link typedCode} returns it, has the form of a code of the device flow. */
export function isUserCode(code: string): boolean {
  return code.length === LENGTH && [...code].every((letter) => CONSONANTS.includes(letter));
}

/** The code that a terminal shows for its raw public key: the first 8 digits of its SHA-256 in base32. */
export function confirmationCode(publicKey: Buffer): string {
  const hash = createHash("sha256").update(publicKey).digest();
  // 5 bytes are 8 digits of 5 bits each.
  return encodeBase32(hash.subarray(0, 5));
}

/** A code in groups of four, as people see it. */
export function grouped(code: string): string {
  return `${code.slice(0, 4)}-${code.slice(4)}`;
}

/** What somebody typed, without what people put between groups, in capitals. */
export function typedCode(text: string): string {
  return text
    .slice(0, 64)
    .replace(/[\s\-_.]/g, "")
    .toUpperCase();
}
