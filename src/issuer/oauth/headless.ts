// Logins for a terminal without a browser: the terminal makes an X25519 key pair,
// somebody signs in with any browser, and what comes of it is sealed so that
// only the terminal can open it.
import { createHash, createPublicKey, diffieHellman, generateKeyPairSync, type KeyObject } from "node:crypto";
import { encodeBase32 } from "../../kernel/base32.js";
import { invalidArgument } from "../../kernel/errors.js";
import { seal } from "../../kernel/seal.js";
import type { Tx } from "../../store/port.js";
import { LOGIN_MS, ticketHash } from "./state.js";

/** The outcome of a headless login, as the terminal reads it. */
export interface HeadlessSession {
  /** The text of the base64url of the public key that the outcome was sealed with. */
  readonly ecdhPublicKey: Uint8Array;
  /** Nonce (12 bytes), AES-256-GCM ciphertext and tag (16 bytes); the key is the shared secret. */
  readonly encryptedIdtoken: Uint8Array;
}

/** Where a headless login stands. */
type StoredSession =
  | { readonly state: "answered"; readonly ecdhPublicKey: string; readonly encryptedIdtoken: string }
  | { readonly state: "taken" | "locked" };

const KEY_BYTES = 32;

/**
 * The raw public key in a `headless_code`.
 *
 * @throws ApiError INVALID_ARGUMENT when it is none, or one that agrees on the same secret with every
 * other (RFC 7748, section 6.1).
 */
export function requireHeadlessKey(code: string): Buffer {
  const raw = Buffer.from(code, "base64url");
  if (raw.length === KEY_BYTES && raw.toString("base64url") === code && isSound(raw)) return raw;
  const rule = "headless_code must be the base64url of an X25519 public key";
  throw invalidArgument({ field: "headless_code", description: rule });
}

/**
 * The code that a terminal shows for its raw public key, as it is typed into the browser: the first 40 bits of the
 * SHA-256 of the key, in base32.
 */
export function confirmationCodeOf(publicKey: Buffer): string {
  return encodeBase32(createHash("sha256").update(publicKey).digest().subarray(0, 5));
}

/** Whether a login with this code can begin or go on: it was not answered yet, nor locked. */
export async function isHeadlessOpen(tx: Tx, code: string, nowMs: number): Promise<boolean> {
  const row = await tx.tickets.get("headless", ticketHash(code));
  return row === undefined || row.expireTimeMs <= nowMs;
}

/** Ends a login for which somebody guessed. */
export function lockHeadlessSession(tx: Tx, code: string, nowMs: number): Promise<void> {
  return store(tx, code, { state: "locked" }, nowMs);
}

/** Stores the outcome for the terminal, readable to it alone. */
export function answerHeadlessSession(tx: Tx, code: string, outcome: string, nowMs: number): Promise<void> {
  const { publicKey, privateKey } = generateKeyPairSync("x25519");
  const key = diffieHellman({ privateKey, publicKey: publicKeyOf(requireHeadlessKey(code)) });
  const session: StoredSession = {
    state: "answered",
    ecdhPublicKey: String(publicKey.export({ format: "jwk" }).x),
    encryptedIdtoken: seal(key, Buffer.from(outcome), "").toString("base64"),
  };
  return store(tx, code, session, nowMs);
}

/**
 * The outcome of a headless login, once. Needs a transaction that can write.
 *
 * @param code the `headless_code` of the login
 * @param nowMs the time in epoch milliseconds
 * @returns undefined while there is none, after it was taken, and ten minutes after it came
 */
export async function takeHeadlessSession(tx: Tx, code: string, nowMs: number): Promise<HeadlessSession | undefined> {
  const row = await tx.tickets.get("headless", ticketHash(code));
  if (row === undefined || row.expireTimeMs <= nowMs) return undefined;
  const session = row.data as StoredSession;
  if (session.state !== "answered") return undefined;
  await store(tx, code, { state: "taken" }, nowMs);
  return {
    ecdhPublicKey: Buffer.from(session.ecdhPublicKey),
    encryptedIdtoken: Buffer.from(session.encryptedIdtoken, "base64"),
  };
}

async function store(tx: Tx, code: string, data: StoredSession, nowMs: number): Promise<void> {
  await tx.tickets.put({ hash: ticketHash(code), kind: "headless", data, expireTimeMs: nowMs + LOGIN_MS });
}

function publicKeyOf(raw: Buffer): KeyObject {
  return createPublicKey({ key: { kty: "OKP", crv: "X25519", x: raw.toString("base64url") }, format: "jwk" });
}

// Node refuses a shared secret of zeros.
function isSound(raw: Buffer): boolean {
  try {
    const { privateKey } = generateKeyPairSync("x25519");
    diffieHellman({ privateKey, publicKey: publicKeyOf(raw) });
    return true;
  } catch {
    return false;
  }
}
