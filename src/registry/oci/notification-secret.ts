// The secret by which the registry proves who it is.
import { createHash, timingSafeEqual } from "node:crypto";
import { closeSync, fstatSync, openSync, readFileSync } from "node:fs";

const MIN_CHARACTERS = 32;
const PRINTABLE = /^[\x21-\x7e]+$/;

/** Whether an Authorization header carries the secret; takes as long for any header of one length. */
export type SecretCheck = (authorization: string | undefined) => boolean;

/**
 * Reads the secret from a file, which may end in a line break.
 *
 * @throws Error when the file cannot be read, is readable by others than its owner, belongs to another
 * user, or holds anything but one word of at least 32 printable ASCII characters.
 */
export function readSecret(file: string): SecretCheck {
  const secret = textIn(file).replace(/\r?\n$/, "");
  if (secret.length < MIN_CHARACTERS || !PRINTABLE.test(secret)) {
    const rule = `one word of at least ${MIN_CHARACTERS} printable ASCII characters`;
    throw new Error(`the registry secret ${file} must hold ${rule}`);
  }
  const wanted = hashOf(`bearer ${secret}`);
  // RFC 9110, section 11.1: the scheme is read in any case, what follows is not.
  return (authorization = "") => timingSafeEqual(hashOf(authorization.replace(/^bearer +/i, "bearer ")), wanted);
}

function textIn(file: string): string {
  let descriptor: number;
  try {
    descriptor = openSync(file, "r");
  } catch (cause) {
    throw new Error(`the registry secret ${file} cannot be read`, { cause });
  }
  try {
    const { mode, uid } = fstatSync(descriptor);
    const owner = `the registry secret ${file} must be readable by its owner alone (mode 0600)`;
    if ((mode & 0o077) !== 0) throw new Error(owner);
    if (process.getuid && uid !== process.getuid()) {
      throw new Error(`the registry secret ${file} belongs to another user`);
    }
    return readFileSync(descriptor, "utf8");
  } finally {
    closeSync(descriptor);
  }
}

function hashOf(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}
