import type { AuditHead, ChainEntry, StoredAuditRow } from "../store/port.js";
import { type Link, linkAfter, start } from "./chain.js";
import { type HeadKey, signHead } from "./head.js";

/** What is written to seal some rows. */
export interface Batch {
  readonly entries: readonly ChainEntry[];
  /** One for each chain that grew. */
  readonly heads: readonly AuditHead[];
}

/**
 * Puts rows behind the ends of their chains and signs the new ends.
 *
 * @param rows in the order they are to have in their chains
 * @param ends the ends so far, by organisation
 */
export async function batchOf(
  rows: readonly StoredAuditRow[],
  ends: ReadonlyMap<string, Link>,
  key: HeadKey,
  timeMs: number,
): Promise<Batch> {
  const grown = new Map<string, Link>();
  const entries = rows.map((row): ChainEntry => {
    const { rootUid, id: auditId } = row;
    const link = linkAfter(grown.get(rootUid) ?? ends.get(rootUid) ?? start, row);
    grown.set(rootUid, link);
    return { rootUid, auditId, ...link };
  });
  const heads = await Promise.all([...grown].map(([rootUid, link]) => signHead({ rootUid, timeMs, ...link }, key)));
  return { entries, heads };
}
