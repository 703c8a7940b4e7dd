// Recomputes chains from the rows and compares them with what was signed. It
// trusts nothing in the database but signatures, and none made with a key that
// the master key does not open.
import type { AuditHead, SealedRow, Store, Tx, UnsealedTail } from "../store/port.js";
import { type Link, linkAfter, start, stateOfHead } from "./chain.js";
import type { AuditKeys } from "./sealer.js";

/** Where a log is not what was sealed, and how that shows. */
export interface Fault {
  /** The place in the chain. */
  readonly seq: number;
  readonly what: string;
}

/** What there is to say of the log of an organisation. */
export interface LogReport {
  readonly rootUid: string;
  /** Rows found to be what was sealed, up to the first fault. */
  readonly sealed: number;
  /** When the head was signed; undefined where there is none. */
  readonly signedTimeMs: number | undefined;
  readonly unsealed: UnsealedTail;
  /** The first fault; undefined when all is well. */
  readonly fault: Fault | undefined;
}

/** Entries read at once. */
const PAGE = 1_000;

interface Walked extends Omit<LogReport, "signedTimeMs"> {
  readonly head: AuditHead | undefined;
  readonly end: Link;
}

/**
 * Verifies the log of an organisation as of one moment, beside any server that goes on sealing it.
 *
 * Not found out, because all that is in the database agrees: a log put back as a whole to what it was
 * when an older head was signed, a log removed with its chain and head, and rows that were changed or
 * removed before they were sealed.
 */
export async function verifyLog(store: Store, rootUid: string, keys: AuditKeys): Promise<LogReport> {
  const { head, end, ...report } = await store.read((tx) => walk(tx, rootUid));
  const fault = report.fault ?? (await faultOfHead(head, end, keys));
  return { ...report, fault, signedTimeMs: head?.timeMs };
}

async function walk(tx: Tx, rootUid: string): Promise<Walked> {
  const head = await tx.auditChain.head(rootUid);
  const unsealed = await tx.auditChain.unsealedOf(rootUid);
  const settledId = (await tx.auditChain.sealer())?.settledId ?? 0;
  let end = start;
  // Where the first unsealed row would belong, by its id.
  let before = 0;
  let fault: Fault | undefined;
  for (let more = true; more && fault === undefined; ) {
    const page = await tx.auditChain.entries(rootUid, end.seq, PAGE);
    more = page.length === PAGE;
    for (const entry of page) {
      const next = linkOf(entry, end, rootUid);
      if ("what" in next) {
        fault = next;
        break;
      }
      end = next;
      if (unsealed.firstId !== null && entry.auditId < unsealed.firstId) before = end.seq;
    }
  }
  if (fault === undefined && unsealed.firstId !== null && unsealed.firstId <= settledId) {
    const what = `row ${unsealed.firstId} was inserted: everything of its time is sealed, and it is not`;
    fault = { seq: before + 1, what };
  }
  return { rootUid, sealed: end.seq, unsealed, fault, head, end };
}

function linkOf({ seq, auditId, hash, row }: SealedRow, end: Link, rootUid: string): Link | Fault {
  if (seq !== end.seq + 1) return { seq: end.seq + 1, what: `the entry is missing, the next one is ${seq}` };
  if (row === null) return { seq, what: `row ${auditId} was removed` };
  const link = linkAfter(end, row);
  if (link.hash === hash && row.rootUid === rootUid) return link;
  return { seq, what: `row ${auditId} is not what was sealed here: it was changed, moved or inserted` };
}

async function faultOfHead(head: AuditHead | undefined, end: Link, keys: AuditKeys): Promise<Fault | undefined> {
  if (head === undefined) return end.seq === 0 ? undefined : { seq: end.seq, what: "the signed head is missing" };
  const { seq } = head;
  const known = (): ReturnType<typeof stateOfHead> => stateOfHead(head, (kid) => keys.auditVerifying(kid));
  let state = await known();
  if (state === "unknown key" && (await keys.refresh())) state = await known();
  if (state === "unknown key")
    return { seq, what: "the head is signed with a key that is not one of this installation" };
  if (state === "forged") return { seq, what: "the signature of the head is wrong" };
  if (end.seq < seq)
    return { seq: end.seq + 1, what: `the chain is cut: it ends here, and ${seq} entries were signed` };
  if (end.seq > seq)
    return { seq: seq + 1, what: `the head is an older one: the chain goes on to ${end.seq} behind it` };
  return end.hash === head.hash
    ? undefined
    : { seq, what: "the chain was computed anew: it does not end in what was signed" };
}
