import { createHash } from "node:crypto";

/** Computes the SHA-256 of a text or of bytes that are in memory. */
export function sha256(data: string | Uint8Array): Buffer {
  return createHash("sha256").update(data).digest();
}
