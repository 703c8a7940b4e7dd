// Recomputes chains from the rows and compares them with the signed heads. In the database it trusts only signatures
// by keys that the master key decrypts.
import { hashBody } from "../kernel/audit-body.js";
import type { SealedRow, UnsealedTail } from "../store/audit/chain.js";
import type { Store } from "../store/store.js";
import type { AuditCheckpoint, AuditHead } from "../store/tables/audit.js";
import type { Tx } from "../store/transaction.js";
import {
  type AuditKeys,
  buildNextLink,
  CHAIN_START,
  isKnownVersion,
  type Link,
  type SignatureState,
  verifyCheckpoint,
  verifyHead,
} from "./chain.js";

/** An entry at which a log differs from what was sealed. */
export interface Fault {
  /** The number of the entry in the chain. */
  readonly seq: number;
  readonly what: string;
}

/** The result of verifying an organisation's log. */
export interface LogReport {
  readonly rootUid: string;
  /** Where the log begins; undefined where nothing was deleted. */
  readonly checkpoint: AuditCheckpoint | undefined;
  /** The number of unchanged rows after the checkpoint and before the first fault. */
  readonly sealed: number;
  /** The time of the signed head; undefined where there is none. */
  readonly signedTimeMs: number | undefined;
  readonly unsealed: UnsealedTail;
  /** The first fault; undefined when there is none. */
  readonly fault: Fault | undefined;
}

/** Entries read at once. */
const ENTRIES_PER_READ = 1_000;

/** A chain without its entries, as of one moment. */
export interface ChainState {
  readonly head: AuditHead | undefined;
  readonly checkpoint: AuditCheckpoint | undefined;
  readonly unsealed: UnsealedTail;
  /** The number of a row that is not sealed although later ones are; undefined where the state does not have it. */
  readonly insertedId?: number | undefined;
}

/** Some entries of a chain, in order. */
export interface ChainPage {
  readonly entries: readonly SealedRow[];
  /** The number of a row that is not sealed although later ones are; where the state does not have it. */
  readonly insertedId?: number | undefined;
  /** The number of the first entry whose row has another body than was sealed; undefined where none has. */
  readonly changedBody?: number | undefined;
}

export type AuditVerifyingKeys = Pick<AuditKeys, "findAuditVerifyingKey" | "refresh">;

/** The result of computing a chain again, before its signatures are verified. */
interface ChainWalk extends Omit<LogReport, "signedTimeMs"> {
  readonly head: AuditHead | undefined;
  readonly end: Link;
  /** The link with the number of the head; undefined where the chain does not reach it. */
  readonly atHead: Link | undefined;
}

/** Verifies the log of an organisation as of one moment, while a server may continue to seal it. */
export async function verifyLog(store: Store, rootUid: string, keys: AuditVerifyingKeys): Promise<LogReport> {
  const walk = await store.read(async (tx) => walkChain(rootUid, await readState(tx, rootUid), readPages(tx, rootUid)));
  return verifySignatures(walk, keys);
}

async function readState(tx: Tx, rootUid: string): Promise<ChainState> {
  const head = await tx.auditChain.findHead(rootUid);
  const unsealed = await tx.auditChain.readUnsealedTail(rootUid);
  const { settledId = 0 } = (await tx.auditChain.findSealer()) ?? {};
  const isInserted = unsealed.firstId !== null && unsealed.firstId <= settledId;
  return {
    ...{ head, unsealed, checkpoint: await tx.auditCheckpoints.find(rootUid) },
    ...(isInserted && { insertedId: unsealed.firstId }),
  };
}

async function* readPages(tx: Tx, rootUid: string): AsyncGenerator<ChainPage> {
  // An entry before the start of the chain would be found nowhere else.
  for (let afterSeq = BEFORE_ALL_ENTRIES; ; ) {
    const entries = await tx.auditChain.listEntries(rootUid, afterSeq, ENTRIES_PER_READ);
    yield { entries, changedBody: await findChangedBody(tx, entries) };
    if (entries.length < ENTRIES_PER_READ) return;
    afterSeq = entries.at(-1)?.seq ?? afterSeq;
  }
}

/** Bodies are read until they have this many bytes together. */
const BODY_BYTES_PER_READ = 4 * 1024 * 1024;

/** Finds the first entry whose row has another body than its hash says. */
export async function findChangedBody(tx: Tx, entries: readonly SealedRow[]): Promise<number | undefined> {
  const rest = entries.flatMap(({ seq, row }) => (row === null ? [] : [{ seq, row }]));
  for (let start = 0; start < rest.length; ) {
    let end = start;
    for (let bytes = 0; end < rest.length && bytes < BODY_BYTES_PER_READ; end++) bytes += rest[end]?.row.bodyBytes ?? 0;
    const some = rest.slice(start, end);
    const bodies = await tx.audit.readBodies(some.map(({ row }) => row));
    const changed = some.find(({ row }) => hashBody(bodies.get(row.id) ?? "") !== row.bodyHash);
    if (changed !== undefined) return changed.seq;
    start = end;
  }
  return undefined;
}

/** The fault of an entry that {@link findChangedBody} found. */
export function buildBodyFault({ seq, auditId }: SealedRow): Fault {
  return { seq, what: `row ${auditId} has another body than was sealed` };
}

/** Computes a chain again up to its end or its first fault. */
export async function walkChain(
  rootUid: string,
  { head, checkpoint, unsealed, insertedId: stateInsertedId }: ChainState,
  pages: AsyncIterable<ChainPage>,
): Promise<ChainWalk> {
  const start = findStart(checkpoint);
  let end = start;
  let atHead = head?.seq === start.seq ? start : undefined;
  let insertedId = stateInsertedId;
  // The entry before the row that was inserted.
  let before = start.seq;
  let fault: Fault | undefined;
  for await (const { entries, insertedId: pageInsertedId, changedBody } of pages) {
    if (pageInsertedId !== undefined && pageInsertedId < (insertedId ?? Number.POSITIVE_INFINITY)) {
      insertedId = pageInsertedId;
      before = end.seq;
    }
    for (const entry of entries) {
      const next = verifyEntry(entry, end, rootUid);
      if ("what" in next) fault = next;
      else if (entry.seq === changedBody) {
        fault = buildBodyFault(entry);
      }
      if (fault !== undefined || "what" in next) break;
      end = next;
      if (end.seq === head?.seq) atHead = end;
      if (insertedId !== undefined && entry.auditId < insertedId) before = end.seq;
    }
    if (fault !== undefined) break;
  }
  if (fault === undefined && insertedId !== undefined) {
    const what = `row ${insertedId} was inserted: everything of its time is sealed, and it is not`;
    fault = { seq: before + 1, what };
  }
  return { rootUid, checkpoint, sealed: end.seq - start.seq, unsealed, fault, head, end, atHead };
}

/** Verifies the signatures of a chain that was computed again. */
export async function verifySignatures(
  { head, end, atHead: _, ...report }: ChainWalk,
  keys: AuditVerifyingKeys,
): Promise<LogReport> {
  const { checkpoint } = report;
  const fault =
    (await findCheckpointFault(checkpoint, keys)) ??
    report.fault ??
    (await findHeadFault(head, checkpoint?.seq ?? 0, end, keys));
  return { ...report, fault, signedTimeMs: head?.timeMs };
}

/** A number that comes before those of all entries, also of those that were inserted with wrong numbers. */
export const BEFORE_ALL_ENTRIES = Number.MIN_SAFE_INTEGER;

/** The link before the first entry that was not deleted. */
export function findStart(checkpoint: AuditCheckpoint | undefined): Link {
  return checkpoint === undefined ? CHAIN_START : { seq: checkpoint.seq, hash: checkpoint.hash };
}

/** Verifies the entry after `end`: the new end of the chain, or the fault. */
export function verifyEntry({ seq, auditId, hash, row }: SealedRow, end: Link, rootUid: string): Link | Fault {
  if (seq <= end.seq) return { seq, what: `the entry does not belong here: the chain begins after ${end.seq}` };
  if (seq !== end.seq + 1) return { seq: end.seq + 1, what: `the entry is missing, the next one is ${seq}` };
  if (row === null) return { seq, what: `row ${auditId} was removed` };
  if (!isKnownVersion(row)) return { seq, what: `row ${auditId} has version ${row.version}, which is not known here` };
  const link = buildNextLink(end, row);
  const hasNoBody = row.bodyHash === "" && row.bodyBytes === 0;
  const isCovered =
    row.version === 3 || (hasNoBody && (row.version === 2 || (row.traceId === "" && row.actorName === "")));
  if (link.hash === hash && row.rootUid === rootUid && isCovered) return link;
  // Arbor up to version 0.4 seals every row as one of version 1.
  if (row.version > 1 && buildNextLink(end, { ...row, version: 1 }).hash === hash) {
    return {
      seq,
      what: `row ${auditId} was sealed as one of version 1: by an older Arbor, or its version was changed`,
    };
  }
  return { seq, what: `row ${auditId} is not what was sealed here: it was changed, moved or inserted` };
}

async function findHeadFault(
  head: AuditHead | undefined,
  startSeq: number,
  end: Link,
  keys: AuditVerifyingKeys,
): Promise<Fault | undefined> {
  if (head === undefined) return end.seq === 0 ? undefined : { seq: end.seq, what: "the signed head is missing" };
  const { seq } = head;
  const fault = await findSignatureFault(head, keys);
  if (fault !== undefined) return fault;
  if (end.seq < seq)
    return { seq: end.seq + 1, what: `the chain is cut: it ends here, and ${seq} entries were signed` };
  if (end.seq > seq)
    return { seq: seq + 1, what: `the head is an older one: the chain goes on to ${end.seq} behind it` };
  if (end.hash !== head.hash) return { seq, what: "the chain was computed anew: it does not end in what was signed" };
  // Retention keeps the entry that the head signs, whatever its age.
  return end.seq === startSeq ? { seq, what: "all entries were removed: the last one is never deleted" } : undefined;
}

/** Verifies the signature of a head; undefined when it is right. */
export async function findSignatureFault(head: AuditHead, keys: AuditVerifyingKeys): Promise<Fault | undefined> {
  const { seq } = head;
  const state = await verifyWithNewestKeys(keys, () => verifyHead(head, (kid) => keys.findAuditVerifyingKey(kid)));
  if (state === "unknown key")
    return { seq, what: "the head is signed with a key that is not one of this installation" };
  return state === "forged" ? { seq, what: "the signature of the head is wrong" } : undefined;
}

/** Verifies the signature of a checkpoint; undefined when it is right or there is no checkpoint. */
export async function findCheckpointFault(
  checkpoint: AuditCheckpoint | undefined,
  keys: AuditVerifyingKeys,
): Promise<Fault | undefined> {
  if (checkpoint === undefined) return undefined;
  const { seq } = checkpoint;
  const state = await verifyWithNewestKeys(keys, () =>
    verifyCheckpoint(checkpoint, (kid) => keys.findAuditVerifyingKey(kid)),
  );
  if (state === "unknown key")
    return { seq, what: "the checkpoint is signed with a key that is not one of this installation" };
  return state === "forged" ? { seq, what: "the signature of the checkpoint is wrong" } : undefined;
}

/** Verifies a signature, and reads the keys again where one is missing, because another node may have generated it. */
export async function verifyWithNewestKeys(
  keys: Pick<AuditKeys, "refresh">,
  verify: () => Promise<SignatureState>,
): Promise<SignatureState> {
  const state = await verify();
  return state === "unknown key" ? keys.refresh().then(verify) : state;
}

// The end of a chain that a verifier has seen before. Signatures cannot show that the end was cut off together with
// its head, or that the whole log is that of an earlier time: such a log was signed once.

/** Finds whether a chain still has a remembered entry, while its pages are read. */
interface RememberedHead {
  /** Passes the pages on. */
  watch(pages: AsyncIterable<ChainPage>): AsyncIterable<ChainPage>;
  /**
   * The fault where the chain does not have the entry any more; undefined where it does, and where retention has
   * deleted the entry meanwhile.
   *
   * @param end the last entry of the chain
   */
  findFault(end: Link): Fault | undefined;
}

/**
 * Begins to look for an entry.
 *
 * @param remembered the entry; nothing is looked for where it is undefined
 * @param checkpoint where the chain begins
 */
export function watchForHead(remembered: Link | undefined, checkpoint: AuditCheckpoint | undefined): RememberedHead {
  const start = findStart(checkpoint);
  let found = remembered !== undefined && start.seq === remembered.seq ? start.hash : undefined;
  return {
    async *watch(pages) {
      for await (const page of pages) {
        found ??= page.entries.find(({ seq }) => seq === remembered?.seq)?.hash;
        yield page;
      }
    },
    findFault(end) {
      if (remembered === undefined || remembered.seq < start.seq || remembered.hash === found) return undefined;
      const { seq } = remembered;
      if (end.seq < seq) {
        return {
          seq: end.seq + 1,
          what: `the log was cut or put back: it ends here, and entry ${seq} was there before`,
        };
      }
      return { seq, what: "the log was replaced: this entry is not the one that was there before" };
    },
  };
}
