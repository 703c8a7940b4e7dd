// Exports a chain for others to verify without Arbor: docs/operations.md has the format and the algorithm.
import type { JsonWebKey } from "node:crypto";
import { decodeProtectedHeader } from "jose";
import type { Store } from "../store/store.js";
import type { AuditCheckpoint, AuditHead, StoredAuditRow } from "../store/tables/audit.js";
import { type AuditKeys, selectMembers } from "./chain.js";

/**
 * The first line of an export whose oldest entries were deleted: the signed checkpoint, and the public key with the
 * kid that its signature names.
 */
export interface ExportedCheckpoint {
  readonly checkpoint: AuditCheckpoint;
  readonly key: JsonWebKey;
}

/**
 * A line of an export: an entry of the chain, with null for a row that is not there any more, and the body of the row if
 * it has one. A body that cannot be read as JSON is a text.
 */
export interface ExportedEntry {
  readonly seq: number;
  readonly hash: string;
  readonly row: Partial<StoredAuditRow> | null;
  readonly body?: unknown;
}

/** The last line of an export: the signed head, and the public key with the kid that its signature names. */
export interface ExportedHead {
  readonly head: AuditHead;
  readonly key: JsonWebKey;
}

/** Entries read at once. */
const ENTRIES_PER_READ = 1_000;

/**
 * Reads the chain of an organisation from its checkpoint, if it has one, up to its signed head. It verifies nothing.
 *
 * @throws Error when the chain has no signed head, the head or the checkpoint is signed with a key that is not known,
 * or retention deletes entries before they are read
 * @throws RangeError for a row of a version that is not known
 */
export async function* exportChain(
  store: Store,
  rootUid: string,
  keys: AuditKeys,
): AsyncGenerator<ExportedCheckpoint | ExportedEntry | ExportedHead> {
  const readCheckpoint = () => store.read((tx) => tx.auditCheckpoints.find(rootUid));
  const { head, checkpoint } = await store.read(async (tx) => {
    return { head: await tx.auditChain.findHead(rootUid), checkpoint: await tx.auditCheckpoints.find(rootUid) };
  });
  if (head === undefined) throw new Error("this log has no signed head");
  const key = await exportKey("head", head, keys);
  if (checkpoint !== undefined) yield { checkpoint, key: await exportKey("checkpoint", checkpoint, keys) };
  for (let end = checkpoint?.seq ?? 0; end < head.seq; ) {
    const page = await store.read((tx) => tx.auditChain.listEntries(rootUid, end, ENTRIES_PER_READ));
    if (page[0]?.seq !== end + 1 && ((await readCheckpoint())?.seq ?? 0) > end) {
      throw new Error("old rows of this log were deleted while it was exported: export it again");
    }
    for (const { seq, hash, row } of page) {
      if (seq > head.seq) break;
      const body = row && row.bodyBytes > 0 ? await readBody(row) : undefined;
      yield { seq, hash, row: row && selectMembers(row), ...(body !== undefined && { body }) };
    }
    end = page.at(-1)?.seq ?? head.seq;
  }
  yield { head, key };

  async function readBody(row: StoredAuditRow): Promise<unknown> {
    return parseBody((await store.read((tx) => tx.audit.readBodies([row]))).get(row.id) ?? "");
  }
}

/** Parses a stored body. One that was changed by hand may be no JSON, and is returned as it is. */
export function parseBody(body: string): unknown {
  try {
    return JSON.parse(body);
  } catch {
    return body;
  }
}

async function exportKey(what: string, { signature }: { signature: string }, keys: AuditKeys): Promise<JsonWebKey> {
  const { kid = "" } = decodeProtectedHeader(signature);
  let key = keys.findAuditVerifyingKey(kid);
  if (key === undefined) {
    await keys.refresh();
    key = keys.findAuditVerifyingKey(kid);
  }
  if (key === undefined) throw new Error(`the ${what} is signed with a key that is not one of this installation`);
  return { kid, ...key.export({ format: "jwk" }) };
}
