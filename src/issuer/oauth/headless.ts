// Logins for a terminal without a browser. The terminal creates an X25519 key pair, a person signs in with any
// browser, and the outcome is encrypted for the key of the terminal.
import { createPublicKey, diffieHellman, generateKeyPairSync, type KeyObject } from "node:crypto";
import { sha256 } from "../../kernel/digest.js";
import { invalidArgument } from "../../kernel/errors.js";
import { encodeBase32 } from "../../kernel/ids.js";
import { seal } from "../../kernel/seal.js";
import { CLI_CLIENT_ID } from "../../kernel/web.js";
import type { Store } from "../../store/store.js";
import type { Tx } from "../../store/transaction.js";
import { LOGIN_MS } from "./browser.js";
import { originOf, prepareStart } from "./start-limit.js";
import type { HeadlessDestination, WaitingTerminal } from "./state.js";
import { hashTicket, type Tickets } from "./tickets.js";

/** The outcome of a headless login, as the terminal reads it. */
export interface HeadlessSession {
  /** The service's public key of the key agreement, as base64url text. */
  readonly ecdhPublicKey: Uint8Array;
  /** Nonce (12 bytes), AES-256-GCM ciphertext and tag (16 bytes); the key is the shared secret. */
  readonly encryptedIdtoken: Uint8Array;
}

type StoredSession =
  | { readonly state: "answered"; readonly ecdhPublicKey: string; readonly encryptedIdtoken: string }
  | { readonly state: "taken" | "locked" };

const KEY_BYTES = 32;

/**
 * Decodes the raw public key in a `headless_code`.
 *
 * @throws ApiError INVALID_ARGUMENT when it is not a X25519 key, or one with which every key agreement has the same
 * result (RFC 7748, section 6.1)
 */
export function requireHeadlessKey(code: string): Buffer {
  const raw = Buffer.from(code, "base64url");
  if (raw.length === KEY_BYTES && raw.toString("base64url") === code && isUsableKey(raw)) return raw;
  const rule = "must be the base64url of an X25519 public key";
  throw invalidArgument({ field: "headless_code", rule });
}

/** Whether the program of a headless login shows the confirmation code: only the command line does. */
export function showsCode({ clientId }: Pick<HeadlessDestination, "clientId">): boolean {
  return clientId === CLI_CLIENT_ID;
}

/** Computes the confirmation code of a terminal's raw public key: the first 40 bits of its SHA-256, in base32. */
export function computeConfirmationCode(publicKey: Buffer): string {
  return encodeBase32(sha256(publicKey).subarray(0, 5));
}

/** Whether a login with this code can start or continue: it has no outcome yet and is not locked. */
export async function isHeadlessOpen(tx: Tx, code: string, nowMs: number): Promise<boolean> {
  const row = await tx.tickets.find("headless", hashTicket(code));
  return row === undefined || row.expireTimeMs <= nowMs;
}

/** Ends a login after too many wrong confirmation codes. */
export function lockHeadlessSession(tx: Tx, code: string, nowMs: number): Promise<void> {
  return putSession(tx, code, { state: "locked" }, nowMs);
}

/** Stores the outcome, encrypted for the key of the terminal. */
export function completeHeadlessSession(tx: Tx, code: string, outcome: string, nowMs: number): Promise<void> {
  const { publicKey, privateKey } = generateKeyPairSync("x25519");
  const key = diffieHellman({ privateKey, publicKey: importPublicKey(requireHeadlessKey(code)) });
  const session: StoredSession = {
    state: "answered",
    ecdhPublicKey: String(publicKey.export({ format: "jwk" }).x),
    encryptedIdtoken: seal(key, Buffer.from(outcome), "").toString("base64"),
  };
  return putSession(tx, code, session, nowMs);
}

/**
 * Takes the outcome of a headless login, which can be taken once. The transaction must be able to write.
 *
 * @param code the `headless_code` of the login
 * @param nowMs the time in epoch milliseconds
 * @returns undefined while there is no outcome, after it was taken, and ten minutes after the login
 */
export async function takeHeadlessSession(tx: Tx, code: string, nowMs: number): Promise<HeadlessSession | undefined> {
  const row = await tx.tickets.find("headless", hashTicket(code));
  if (row === undefined || row.expireTimeMs <= nowMs) return undefined;
  const session = row.data as StoredSession;
  if (session.state !== "answered") return undefined;
  await putSession(tx, code, { state: "taken" }, nowMs);
  return {
    ecdhPublicKey: Buffer.from(session.ecdhPublicKey),
    encryptedIdtoken: Buffer.from(session.encryptedIdtoken, "base64"),
  };
}

/**
 * Notes where a terminal polls from, so that the confirmation page can show it.
 *
 * @param code the `headless_code` of the login; others are not noted
 * @param address of the terminal
 */
export type NoteTerminal = (code: string, address: string | undefined, nowMs: number) => Promise<void>;

/** The largest number of addresses that are noted for a login. */
const MAX_ADDRESSES = 4;
const HEADLESS_CODE = /^[A-Za-z0-9_-]{43}$/;

/** Creates the function that notes terminals. Polls need no authentication, so the rows of an address are limited. */
export function createTerminalNotes(deps: {
  readonly store: Pick<Store, "read" | "write">;
  readonly tickets: Tickets;
}): NoteTerminal {
  const { store, tickets } = deps;
  const isComplete = (known: WaitingTerminal | undefined, address: string) =>
    known !== undefined && (known.addresses.length >= MAX_ADDRESSES || known.addresses.includes(address));

  return async (code, remoteAddress, nowMs) => {
    const address = remoteAddress ?? "unknown";
    if (!HEADLESS_CODE.test(code)) return;
    if (isComplete(await store.read((tx) => findTerminal(tx, tickets, code, nowMs)), address)) return;
    const start = await prepareStart(store, "terminal", originOf(remoteAddress, false), nowMs);
    await store.write(async (tx) => {
      const known = await findTerminal(tx, tickets, code, nowMs);
      if (isComplete(known, address)) return;
      const noted = { addresses: [...(known?.addresses ?? []), address], atMs: known?.atMs ?? nowMs };
      await tickets.start(tx, "terminal", terminalKey(code), noted, noted.atMs + LOGIN_MS, start);
    });
  };
}

/** Finds the terminal that waits for the outcome of a login. */
export function findTerminal(
  tx: Tx,
  tickets: Tickets,
  code: string,
  nowMs: number,
): Promise<WaitingTerminal | undefined> {
  return tickets.find(tx, "terminal", terminalKey(code), nowMs);
}

// The outcome of the login has the code itself as its key.
function terminalKey(code: string): string {
  return `terminal ${code}`;
}

async function putSession(tx: Tx, code: string, data: StoredSession, nowMs: number): Promise<void> {
  await tx.tickets.put({ hash: hashTicket(code), kind: "headless", data, expireTimeMs: nowMs + LOGIN_MS });
}

function importPublicKey(raw: Buffer): KeyObject {
  return createPublicKey({ key: { kty: "OKP", crv: "X25519", x: raw.toString("base64url") }, format: "jwk" });
}

// Node rejects a shared secret of zeros.
function isUsableKey(raw: Buffer): boolean {
  try {
    const { privateKey } = generateKeyPairSync("x25519");
    diffieHellman({ privateKey, publicKey: importPublicKey(raw) });
    return true;
  } catch {
    return false;
  }
}
