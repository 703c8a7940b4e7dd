// Recomputes chains from the rows and compares them with the signed heads. In the database it trusts only signatures
// by keys that the master key decrypts.
import type { AuditCheckpoint, AuditHead, SealedRow, Store, Tx, UnsealedTail } from "../store/port.js";
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

/** A place where a log differs from what was sealed. */
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

interface ChainWalk extends Omit<LogReport, "signedTimeMs"> {
  readonly head: AuditHead | undefined;
  readonly end: Link;
}

/** Verifies the log of an organisation as of one moment, while a server may continue to seal it. */
export async function verifyLog(store: Store, rootUid: string, keys: AuditKeys): Promise<LogReport> {
  const { head, end, ...report } = await store.read((tx) => walkChain(tx, rootUid));
  const { checkpoint } = report;
  const fault =
    (await findCheckpointFault(checkpoint, keys)) ??
    report.fault ??
    (await findHeadFault(head, checkpoint?.seq ?? 0, end, keys));
  return { ...report, fault, signedTimeMs: head?.timeMs };
}

async function walkChain(tx: Tx, rootUid: string): Promise<ChainWalk> {
  const head = await tx.auditChain.head(rootUid);
  const unsealed = await tx.auditChain.unsealedOf(rootUid);
  const settledId = (await tx.auditChain.sealer())?.settledId ?? 0;
  const checkpoint = await tx.auditCheckpoints.get(rootUid);
  const start = findStart(checkpoint);
  let end = start;
  // An entry before the start of the chain would be found nowhere else.
  let afterSeq = BEFORE_ALL_ENTRIES;
  // The entry before the first unsealed row, by id.
  let before = start.seq;
  let fault: Fault | undefined;
  for (let more = true; more && fault === undefined; ) {
    const page = await tx.auditChain.entries(rootUid, afterSeq, ENTRIES_PER_READ);
    more = page.length === ENTRIES_PER_READ;
    for (const entry of page) {
      const next = verifyEntry(entry, end, rootUid);
      if ("what" in next) {
        fault = next;
        break;
      }
      end = next;
      if (unsealed.firstId !== null && entry.auditId < unsealed.firstId) before = end.seq;
    }
    afterSeq = end.seq;
  }
  if (fault === undefined && unsealed.firstId !== null && unsealed.firstId <= settledId) {
    const what = `row ${unsealed.firstId} was inserted: everything of its time is sealed, and it is not`;
    fault = { seq: before + 1, what };
  }
  return { rootUid, checkpoint, sealed: end.seq - start.seq, unsealed, fault, head, end };
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
  const isCovered = row.version > 1 || (row.traceId === "" && row.actorName === "");
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
  keys: AuditKeys,
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
export async function findSignatureFault(
  head: AuditHead,
  keys: Pick<AuditKeys, "auditVerifying" | "refresh">,
): Promise<Fault | undefined> {
  const { seq } = head;
  const state = await verifyWithNewestKeys(keys, () => verifyHead(head, (kid) => keys.auditVerifying(kid)));
  if (state === "unknown key")
    return { seq, what: "the head is signed with a key that is not one of this installation" };
  return state === "forged" ? { seq, what: "the signature of the head is wrong" } : undefined;
}

/** Verifies the signature of a checkpoint; undefined when it is right or there is no checkpoint. */
export async function findCheckpointFault(
  checkpoint: AuditCheckpoint | undefined,
  keys: Pick<AuditKeys, "auditVerifying" | "refresh">,
): Promise<Fault | undefined> {
  if (checkpoint === undefined) return undefined;
  const { seq } = checkpoint;
  const state = await verifyWithNewestKeys(keys, () => verifyCheckpoint(checkpoint, (kid) => keys.auditVerifying(kid)));
  if (state === "unknown key")
    return { seq, what: "the checkpoint is signed with a key that is not one of this installation" };
  return state === "forged" ? { seq, what: "the signature of the checkpoint is wrong" } : undefined;
}

// Another node may have generated the key.
async function verifyWithNewestKeys(
  keys: Pick<AuditKeys, "refresh">,
  verify: () => Promise<SignatureState>,
): Promise<SignatureState> {
  const state = await verify();
  return state === "unknown key" && (await keys.refresh()) ? verify() : state;
}

// Before the sealer continues a chain, it verifies the signed head alone.

/** Why a chain must not be continued. */
export type VerificationFailure =
  | "its chain has no signed head"
  | "its signed head is missing"
  | "its chain does not end at its signed head"
  | "its head was replaced by an older one"
  | "its head was replaced by another one"
  | "its head is signed with an unknown key"
  | "the signature of its head is wrong"
  | "its next row has a version that is not known here";

/** The largest number of remembered heads; the signatures of others are verified again. */
const MAX_REMEMBERED = 10_000;

/**
 * Creates the verifier that the end of a chain is the signed one. Remembered heads save a verification per batch, and
 * reveal heads that were replaced by older ones.
 */
export function createHeadVerifier(keys: Pick<AuditKeys, "auditVerifying" | "refresh">) {
  const remembered = new Map<string, AuditHead>();

  function remember(head: AuditHead): void {
    remembered.delete(head.rootUid);
    remembered.set(head.rootUid, head);
    const [oldest] = remembered.keys();
    if (remembered.size > MAX_REMEMBERED && oldest !== undefined) remembered.delete(oldest);
  }

  async function verifySignature(head: AuditHead): Promise<VerificationFailure | undefined> {
    const state = await verifyWithNewestKeys(keys, () => verifyHead(head, keys.auditVerifying));
    if (state === "unknown key") return "its head is signed with an unknown key";
    return state === "forged" ? "the signature of its head is wrong" : undefined;
  }

  return {
    /** Remembers a head that this node signed. */
    remember,
    /** Verifies the end of a chain; undefined when the chain may be continued. */
    async check(
      rootUid: string,
      head: AuditHead | undefined,
      lastSeq: number,
    ): Promise<VerificationFailure | undefined> {
      const known = remembered.get(rootUid);
      if (head === undefined) {
        if (lastSeq > 0) return "its chain has no signed head";
        return known === undefined ? undefined : "its signed head is missing";
      }
      if (head.seq !== lastSeq) return "its chain does not end at its signed head";
      if (known !== undefined && head.seq < known.seq) return "its head was replaced by an older one";
      if (known !== undefined && head.seq === known.seq) {
        return head.hash === known.hash ? undefined : "its head was replaced by another one";
      }
      const failure = await verifySignature(head);
      if (failure === undefined) remember(head);
      return failure;
    },
  };
}
