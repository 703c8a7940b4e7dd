// The hash chain of an organisation's audit log: every link covers its row, its
// number and, by the hash before it, all that came earlier.
import { createHash } from "node:crypto";
import type { StoredAuditRow } from "../store/port.js";

/** The end of a chain, or of its beginning up to some entry. */
export interface Link {
  readonly seq: number;
  /** SHA-256 in base64url. */
  readonly hash: string;
}

/** What the first entry of every chain follows. Rows name their organisation, so chains still differ. */
export const start: Link = { seq: 0, hash: Buffer.alloc(32).toString("base64url") };

/** What people call the log of an organisation; what belongs to none has a chain of its own. */
export function nameOfLog(rootUid: string): string {
  return rootUid === "" ? "(installation)" : rootUid;
}

/**
 * The link that seals `row` behind `previous`: SHA-256(previous hash || row || seq), where the row is
 * its canonical JSON and the number is in decimal.
 */
export function linkAfter(previous: Link, row: StoredAuditRow): Link {
  const seq = previous.seq + 1;
  const hash = createHash("sha256")
    .update(Buffer.from(previous.hash, "base64url"))
    .update(canonicalJson(row))
    .update(String(seq))
    .digest("base64url");
  return { seq, hash };
}

/**
 * Every field of a row in the form of RFC 8785: members in the order of their names, no blanks. All
 * values are texts and safe integers, which `JSON.stringify` writes in that form by itself.
 */
export function canonicalJson(row: StoredAuditRow): string {
  const { actorUid, id, method, remoteAddress, requestId, rootUid, subjectUid, timeMs, tokenId, type } = row;
  return JSON.stringify({
    actorUid,
    id,
    method,
    remoteAddress,
    requestId,
    rootUid,
    subjectUid,
    timeMs,
    tokenId,
    type,
  } satisfies Record<keyof StoredAuditRow, unknown>);
}
