import { randomBytes } from "node:crypto";
import { closeSync, existsSync, linkSync, rmSync, writeFileSync } from "node:fs";
import { isDiskFault } from "../../kernel/disk-errors.js";
import { type ApiError, failedPrecondition } from "../../kernel/errors.js";
import { parseMasterKey, readSecretFile } from "../../kernel/files.js";
import { openNewFile } from "../../kernel/new-file.js";
import { seal, unseal } from "../../kernel/seal.js";
import type { Tx } from "../../store/transaction.js";

/** Encrypts secrets at rest. The first key of the file encrypts; all of them decrypt. */
export interface MasterKey {
  /** Encrypts `plain`; the same `context` is needed to decrypt it. */
  seal(plain: Buffer, context: string): string;
  /**
   * @throws Error when none of the keys decrypts it
   */
  unseal(sealed: string, context: string): Buffer;
  /**
   * Encrypts a value again with the key that has encrypted the check value of the store.
   *
   * @returns the value itself when that key has encrypted it
   * @throws Error when none of the keys decrypts one of the two
   */
  resealLike(check: string, sealed: string, context: string): string;
}

/** The master key of a file that may change while it is used. */
export interface MasterKeyFile extends MasterKey {
  /** How many keys are in use. */
  readonly size: number;
  /** How often the keys were replaced by those of a newer file. */
  readonly changes: number;
  /**
   * Reads the file again. Keys that do not decrypt the check value of the store are not used.
   *
   * @param check that value, where the store has one
   * @returns whether the keys have changed
   * @throws Error when the file cannot be used: the keys before stay in use
   */
  reload(check: string | undefined): boolean;
}

/** The file has no usable keys, or others than those that sealed what is stored. Commands end with a code of its own. */
class MasterKeyError extends Error {
  override readonly name = "MasterKeyError";
}

/**
 * Reads the master key from a file: one or more lines of 32 bytes in base64. When a value cannot be decrypted, the file
 * is read again, so servers pick up a rotation at once.
 *
 * @param file the path
 * @param create whether to create the file with a new key when it does not exist
 * @throws Error when the file is missing, readable by others, owned by another user than root, or malformed
 */
export function readMasterKey(file: string, create: boolean): MasterKeyFile {
  if (create) createIfMissing(file);
  let keys = readKeys(file);
  let changes = 0;
  const replaceKeys = (found: typeof keys) => {
    keys = found;
    changes++;
  };
  const open = (among: readonly Buffer[], sealed: string, context: string) => {
    const bytes = Buffer.from(sealed, "base64");
    for (const key of among) {
      const plain = unseal(key, bytes, context);
      if (plain) return { key, plain };
    }
    return undefined;
  };
  const doesNotOpen = (context: string) =>
    new MasterKeyError(`--master-key-file: ${file} does not open what is stored (${context})`);
  // Only keys that decrypt the value are used from then on: the file may be the wrong one.
  function openWithNewKeys(sealed: string, context: string): ReturnType<typeof open> {
    let found: readonly [Buffer, ...Buffer[]];
    try {
      found = readKeys(file);
    } catch {
      return undefined;
    }
    const opened = isSame(keys, found) ? undefined : open(found, sealed, context);
    if (opened) replaceKeys(found);
    return opened;
  }
  function openOrThrow(sealed: string, context: string): NonNullable<ReturnType<typeof open>> {
    const opened = open(keys, sealed, context) ?? openWithNewKeys(sealed, context);
    if (opened === undefined) throw doesNotOpen(context);
    return opened;
  }

  return {
    get size() {
      return keys.length;
    },
    get changes() {
      return changes;
    },
    seal: (plain, context) => seal(keys[0], plain, context).toString("base64"),
    unseal: (sealed, context) => openOrThrow(sealed, context).plain,
    resealLike(check, sealed, context) {
      // Order matters: opening the check value may replace the keys, and the new file may lack the key of this value.
      const { key: before, plain } = openOrThrow(sealed, context);
      const { key } = openOrThrow(check, MASTER_KEY_CHECK);
      return key.equals(before) ? sealed : seal(key, plain, context).toString("base64");
    },
    reload(check) {
      const found = readKeys(file);
      if (isSame(keys, found)) return false;
      if (check !== undefined && !open(found, check, MASTER_KEY_CHECK)) throw doesNotOpen(MASTER_KEY_CHECK);
      replaceKeys(found);
      return true;
    },
  };
}

function readKeys(file: string): readonly [Buffer, ...Buffer[]] {
  let text: string;
  try {
    text = readSecretFile(file);
  } catch (cause) {
    const { message, cause: fault } = cause as Error;
    const error = new MasterKeyError(`--master-key-file: ${message}`, { cause });
    // The disk may come back: supervisors start the service again.
    throw isDiskFault(fault) ? Object.assign(error, { code: (fault as NodeJS.ErrnoException).code }) : error;
  }
  try {
    return parseMasterKey(text);
  } catch (error) {
    throw new MasterKeyError(`--master-key-file: ${file} ${(error as Error).message}`);
  }
}

function isSame(keys: readonly Buffer[], others: readonly Buffer[]): boolean {
  return keys.length === others.length && keys.every((key, i) => others[i]?.equals(key));
}

/** Generates a line of the file. */
export function generateMasterKey(): string {
  return randomBytes(32).toString("base64");
}

// The key is written and flushed before the file gets its name: a crash must leave neither half a key nor secrets that
// were encrypted with a lost key.
function createIfMissing(file: string): void {
  if (existsSync(file)) return;
  const draft = `${file}.${randomBytes(8).toString("hex")}`;
  const descriptor = openNewFile(draft);
  try {
    writeFileSync(descriptor, `${generateMasterKey()}\n`, { flush: true });
    linkSync(draft, file);
  } catch (error) {
    // Another process created the file first; its key is used.
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  } finally {
    closeSync(descriptor);
    rmSync(draft, { force: true });
  }
}

/** The name of the setting with a value that only the right master key opens, and the context of that value. */
export const MASTER_KEY_CHECK = "master-key-check";

/** FAILED_PRECONDITION: an installation has secrets, and the file with their key is missing. */
export function createMissingKeyError(file: string): ApiError {
  const remedy = "restore it from where it is kept, or name it with --master-key-file";
  return failedPrecondition("MASTER_KEY", `the master key ${file} of this installation is missing: ${remedy}`);
}

/** Whether the store has anything that was encrypted with a master key. */
export async function hasSecrets(tx: Tx): Promise<boolean> {
  return (await tx.settings.find(MASTER_KEY_CHECK)) !== undefined || (await tx.keys.list()).length > 0;
}

/**
 * Checks that the store was encrypted with this key, so that a wrong file is found at start and not with the first
 * secret.
 *
 * @returns whether the store has the value to check
 * @throws Error when it was encrypted with another key
 */
export async function verifyMasterKey(tx: Tx, key: MasterKey): Promise<boolean> {
  const stored = await tx.settings.find(MASTER_KEY_CHECK);
  if (stored !== undefined) key.unseal(stored, MASTER_KEY_CHECK);
  return stored !== undefined;
}

/**
 * Encrypts a value that is about to be stored with the key of the store, in the transaction that stores it: a process that
 * has not read the newer file of a rotation yet must not store a value that no remaining key decrypts.
 *
 * @param sealed the value, encrypted with any of the keys
 * @throws Error when the master key file does not have the key of the store
 */
export async function resealForStore(tx: Tx, key: MasterKey, sealed: string, context: string): Promise<string> {
  const check = await tx.settings.find(MASTER_KEY_CHECK);
  return check === undefined ? sealed : key.resealLike(check, sealed, context);
}

/** Encrypts `plain` for a row that is stored in the same transaction, as {@link resealForStore} does. */
export async function sealForStore(tx: Tx, key: MasterKey, plain: Buffer, context: string): Promise<string> {
  return resealForStore(tx, key, key.seal(plain, context), context);
}

/**
 * Checks the key as {@link verifyMasterKey} does, and stores the value to check in a new store.
 *
 * @throws Error when the store was encrypted with another key
 */
export async function checkMasterKey(tx: Tx, key: MasterKey): Promise<void> {
  if (await verifyMasterKey(tx, key)) return;
  await tx.settings.put(MASTER_KEY_CHECK, key.seal(Buffer.from(MASTER_KEY_CHECK), MASTER_KEY_CHECK));
}
