import { randomBytes } from "node:crypto";
import { closeSync, existsSync, fstatSync, linkSync, openSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { seal, unseal } from "../../kernel/seal.js";
import type { Tx } from "../../store/port.js";

/** Seals secrets at rest. The first key of the file seals; all of them open. */
export interface MasterKey {
  /** `plain` encrypted for storage; opens only with the same `context`. */
  seal(plain: Buffer, context: string): string;
  /** @throws Error when none of the keys opens it. */
  unseal(sealed: string, context: string): Buffer;
}

/**
 * Reads the master key from a file: one or more lines of 32 bytes in base64.
 *
 * @param file where it is
 * @param create make the file with a new key when it does not exist
 * @throws Error when the file is missing, readable by others than its owner, another user's, or holds
 * anything but keys.
 */
export function readMasterKey(file: string, create: boolean): MasterKey {
  if (create) createIfMissing(file);
  let descriptor: number;
  try {
    descriptor = openSync(file, "r");
  } catch (cause) {
    throw new Error(`the master key ${file} cannot be read`, { cause });
  }
  try {
    const { mode, uid } = fstatSync(descriptor);
    if ((mode & 0o077) !== 0) throw new Error(`the master key ${file} must be readable by its owner alone (mode 0600)`);
    if (process.getuid && uid !== process.getuid()) throw new Error(`the master key ${file} belongs to another user`);
    return masterKeyOf(readFileSync(descriptor, "utf8"), file);
  } finally {
    closeSync(descriptor);
  }
}

// The key is whole and on disk before it has its name: neither a kill nor a power cut may leave half a
// key, or secrets that were sealed with one that is gone.
function createIfMissing(file: string): void {
  if (existsSync(file)) return;
  const draft = `${file}.${randomBytes(8).toString("hex")}`;
  try {
    writeFileSync(draft, `${randomBytes(32).toString("base64")}\n`, { mode: 0o600, flag: "wx", flush: true });
    linkSync(draft, file);
  } catch (error) {
    // Another process was first, and its key is the one.
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  } finally {
    rmSync(draft, { force: true });
  }
}

/** 32 bytes in base64. */
const KEY = /^[A-Za-z0-9+/]{43}=$/;

function malformed(file: string): Error {
  return new Error(`the master key ${file} must hold lines of 32 bytes in base64`);
}

function masterKeyOf(text: string, file: string): MasterKey {
  const lines = text
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "");
  // Checked by form, since decoders take anything and would make some other key of it.
  if (!lines.every((line) => KEY.test(line))) throw malformed(file);
  const keys = lines.map((line) => Buffer.from(line, "base64"));
  const [first] = keys;
  if (first === undefined) throw malformed(file);
  return {
    seal: (plain, context) => seal(first, plain, context).toString("base64"),
    unseal(sealed, context) {
      for (const key of keys) {
        const plain = unseal(key, Buffer.from(sealed, "base64"), context);
        if (plain) return plain;
      }
      throw new Error(`the master key ${file} does not open what is stored (${context})`);
    },
  };
}

const CHECK = "master-key-check";

/**
 * Makes sure that what is stored was sealed with this key, so that a wrong file is noticed at start
 * and not when the first secret is needed.
 *
 * @throws Error when it was sealed with another key.
 */
export async function checkMasterKey(tx: Tx, key: MasterKey): Promise<void> {
  const stored = await tx.settings.get(CHECK);
  if (stored === undefined) await tx.settings.put(CHECK, key.seal(Buffer.from(CHECK), CHECK));
  else key.unseal(stored, CHECK);
}
