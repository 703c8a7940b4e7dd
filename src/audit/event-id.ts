// The ids of events in the API. The numbers of rows are counted over all organisations: they would tell one
// organisation how much happens in the others.
import { createCipheriv, createDecipheriv, randomBytes } from "node:crypto";
import type { Tx } from "../store/port.js";

/** Converts the numbers of audit rows to ids and back. */
export interface EventIds {
  format(id: number): string;
  /** The number of the row; undefined for a text that is no id of this installation. */
  parse(text: string): number | undefined;
}

const ID = /^[0-9a-f]{32}$/;
const SETTING = "audit_event_id_key";
const KEY_BYTES = 16;
const PADDING = Buffer.alloc(8);

/** Whether a text has the form of an id. */
export function isEventId(text: string): boolean {
  return ID.test(text);
}

/**
 * Reads the key of the ids, and generates it the first time. It stays the same, so that ids do; it hides how many
 * events there are, and grants nothing.
 */
export async function readEventIdKey(tx: Tx): Promise<Buffer> {
  const stored = await tx.settings.find(SETTING);
  if (stored !== undefined) return Buffer.from(stored, "hex");
  const key = randomBytes(KEY_BYTES);
  await tx.settings.put(SETTING, key.toString("hex"));
  return key;
}

/**
 * Creates the codec: an id is one AES block of the number and eight zero bytes, by which foreign ids are recognised.
 */
export function createEventIds(key: Buffer): EventIds {
  return {
    format(id) {
      const block = Buffer.alloc(16);
      block.writeBigUInt64BE(BigInt(id));
      const cipher = createCipheriv("aes-128-ecb", key, null).setAutoPadding(false);
      return Buffer.concat([cipher.update(block), cipher.final()]).toString("hex");
    },
    parse(text) {
      if (!isEventId(text)) return undefined;
      const decipher = createDecipheriv("aes-128-ecb", key, null).setAutoPadding(false);
      const block = Buffer.concat([decipher.update(Buffer.from(text, "hex")), decipher.final()]);
      const id = Number(block.readBigUInt64BE());
      return block.subarray(8).equals(PADDING) && Number.isSafeInteger(id) ? id : undefined;
    },
  };
}
