// Files with secrets: who may read them, and what they contain.
import { closeSync, fstatSync, openSync, readFileSync } from "node:fs";
import { describeExposure, describeReadError } from "./file-error.js";

/**
 * Reads a file that other users must not be able to read.
 *
 * @throws Error whose message names the file and the reason
 */
export function readSecretFile(file: string): string {
  let descriptor: number | undefined;
  let exposure: string | undefined;
  try {
    descriptor = openSync(file, "r");
    exposure = describeExposure(fstatSync(descriptor));
    if (exposure === undefined) return readFileSync(descriptor, "utf8");
  } catch (cause) {
    throw new Error(describeReadError(file, cause), { cause });
  } finally {
    if (descriptor !== undefined) closeSync(descriptor);
  }
  throw new Error(`${file} ${exposure}`);
}

/** 32 bytes in base64. */
const KEY = /^[A-Za-z0-9+/]{43}=$/;
const KEY_RULE = "must hold lines of 32 bytes in base64";

/** @throws Error with the rule that the text violates */
export function parseMasterKey(text: string): readonly [Buffer, ...Buffer[]] {
  const lines = text
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "");
  // Checked by form, because decoders accept any text and would derive another key from it.
  if (!lines.every((line) => KEY.test(line))) throw new Error(KEY_RULE);
  const [first, ...others] = lines.map((line) => Buffer.from(line, "base64"));
  if (first === undefined) throw new Error(KEY_RULE);
  return [first, ...others];
}

const MIN_CHARACTERS = 32;
const PRINTABLE = /^[\x21-\x7e]+$/;

/** Parses the secret of a registry, which may end in a line break. @throws Error with the rule that the text violates */
export function parseRegistrySecret(text: string): string {
  const secret = text.replace(/\r?\n$/, "");
  if (secret.length >= MIN_CHARACTERS && PRINTABLE.test(secret)) return secret;
  throw new Error(`must hold one word of at least ${MIN_CHARACTERS} printable ASCII characters`);
}
