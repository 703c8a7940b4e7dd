// Whether a chain may be continued: the sealer must not sign what was changed before. Its head must be the one that was
// signed last. The entries up to a head that this process has not signed itself are computed again: the last ones before the
// chain is continued, and all of them in the background, a few at a time.
import type { SealedRow } from "../store/audit/chain.js";
import type { Store } from "../store/store.js";
import type { AuditCheckpoint, AuditHead } from "../store/tables/audit.js";
import type { Tx } from "../store/transaction.js";
import { type Link, verifyHead } from "./chain.js";
import {
  type AuditVerifyingKeys,
  buildBodyFault,
  type Fault,
  findChangedBody,
  findCheckpointFault,
  findStart,
  verifyEntry,
  verifyWithNewestKeys,
} from "./verify.js";

/** How many entries before its head are verified before a chain is continued that another process has sealed. */
export const TAIL_ENTRIES = 500;
const COMPUTED_ANEW = "its chain was computed anew: it does not end in what was signed";
/** How many entries one read verifies: on SQLite it blocks other calls for some 2 ms. */
const ENTRIES_PER_READ = 64;
/** After how many bytes of bodies a read ends. */
const BODY_BYTES_PER_READ = 512 * 1024;
/** The largest number of remembered heads; the ends of other chains are verified again. */
const MAX_REMEMBERED = 10_000;
/** How often all chains are verified, in milliseconds. */
export const ROUND_MS = 86_400_000;

/** Where the background has come to in a chain. */
interface Position {
  readonly rootUid: string;
  readonly link: Link;
}

/** A chain of which an entry is not what was sealed. */
interface FaultyChain {
  /** The verified link before the faulty entry. */
  readonly before: Link;
  readonly failure: string;
}

/** What one read of a chain finds. */
interface ReadEntries {
  readonly checkpoint: AuditCheckpoint | undefined;
  readonly entries: readonly SealedRow[];
  readonly changedBody: number | undefined;
}

export interface ContinuationDeps {
  readonly store: Pick<Store, "read">;
  readonly keys: AuditVerifyingKeys;
  /** Monotonic time in milliseconds. */
  readonly monotonic: () => number;
}

/** What a process knows of the chains that it may continue. */
export class ChainContinuation {
  readonly #store: Pick<Store, "read">;
  readonly #keys: AuditVerifyingKeys;
  readonly #monotonic: () => number;
  /** The heads that this process signed, or verified with the entries before them. */
  readonly #remembered = new Map<string, AuditHead>();
  readonly #faulty = new Map<string, FaultyChain>();
  /** The organisations whose heads the background found not to be the signed end of their chains. */
  readonly #suspect = new Set<string>();
  /** The chain that the background verifies; undefined between two. */
  #position: Position | undefined;
  /** The organisation whose chain was verified last in this round; undefined before the first. */
  #lastRoot: string | undefined;
  #nextRoundMs = Number.NEGATIVE_INFINITY;
  #isRound = false;

  constructor({ store, keys, monotonic }: ContinuationDeps) {
    this.#store = store;
    this.#keys = keys;
    this.#monotonic = monotonic;
  }

  /** Remembers a head that this process signed. */
  remember(head: AuditHead): void {
    this.#remembered.delete(head.rootUid);
    this.#remembered.set(head.rootUid, head);
    const [oldest] = this.#remembered.keys();
    if (this.#remembered.size > MAX_REMEMBERED && oldest !== undefined) this.#remembered.delete(oldest);
  }

  /** Why the chain must not be continued after its end, as it was read in one snapshot; undefined when it may be. */
  async findFailure(rootUid: string, head: AuditHead | undefined, lastSeq: number): Promise<string | undefined> {
    const known = this.#remembered.get(rootUid);
    if (head === undefined) {
      if (lastSeq > 0) return "its chain has no signed head";
      return known === undefined ? undefined : "its signed head is missing";
    }
    if (head.seq !== lastSeq) return "its chain does not end at its signed head";
    if (known !== undefined && head.seq < known.seq) return "its head was replaced by an older one";
    const isKnown = known?.seq === head.seq;
    if (isKnown && head.hash !== known.hash) return "its head was replaced by another one";
    const faulty = await this.#verifyFaulty(rootUid);
    const isSuspect = this.#suspect.has(rootUid);
    if (faulty !== undefined || (isKnown && !isSuspect)) return faulty;
    const failure = await this.#verifyTail(head);
    if (failure !== undefined) return failure;
    this.remember(head);
    // It was put right. Before the last entries there may be others.
    if (this.#suspect.delete(rootUid)) this.#nextRoundMs = Number.NEGATIVE_INFINITY;
    return undefined;
  }

  /** Whether the background has chains to verify: after the start, and each day. */
  get hasMore(): boolean {
    return this.#isRound || this.#monotonic() >= this.#nextRoundMs;
  }

  /**
   * Verifies entries in the background, in the order of organisations and of entries, until the time is up or all chains are
   * verified.
   *
   * @param endMs a monotonic time in milliseconds; at least one read is made
   * @returns the organisations among them whose chains must not be continued, with the reason
   */
  async verifyMore(endMs: number): Promise<ReadonlyMap<string, string>> {
    const found = new Map<string, string>();
    if (!this.#isRound) {
      this.#isRound = true;
      this.#lastRoot = undefined;
      this.#nextRoundMs = this.#monotonic() + ROUND_MS;
    }
    do {
      const verified = await this.#verifyNext();
      if (verified === undefined) {
        this.#isRound = false;
        break;
      }
      if (verified.failure !== undefined) found.set(verified.rootUid, verified.failure);
    } while (this.#monotonic() < endMs);
    return found;
  }

  // Verifies some entries of the chain at the position, or of the next one; undefined at the end.
  async #verifyNext(): Promise<{ readonly rootUid: string; readonly failure: string | undefined } | undefined> {
    const at = this.#position;
    this.#position = undefined;
    const read = await this.#store.read(async (tx) => {
      const { auditChain, auditCheckpoints } = tx;
      const head = await (at === undefined ? auditChain.findNextHead(this.#lastRoot) : auditChain.findHead(at.rootUid));
      if (head === undefined) return undefined;
      const start = at?.link ?? findStart(await auditCheckpoints.find(head.rootUid));
      return { head, start, ...(await readEntries(tx, head.rootUid, start.seq)) };
    });
    const rootUid = read?.head.rootUid ?? at?.rootUid;
    if (rootUid === undefined) return undefined;
    this.#lastRoot = rootUid;
    if (read === undefined) return { rootUid, failure: "its signed head is missing" };
    const { head } = read;
    const end = await this.#verifyRead(rootUid, read.start, read);
    if ("what" in end) return { rootUid, failure: this.#faulty.get(rootUid)?.failure };
    // Later entries are sealed by a process that verifies them itself.
    if (end.seq >= head.seq) {
      const failure = await this.#findEndFailure(head, end);
      if (failure !== undefined) this.#suspect.add(rootUid);
      return { rootUid, failure };
    }
    this.#position = { rootUid, link: end };
    return { rootUid, failure: undefined };
  }

  // Of a chain whose entries were verified up to its head.
  async #findEndFailure(head: AuditHead, end: Link): Promise<string | undefined> {
    const isSame = end.seq > head.seq || end.hash === head.hash;
    return (await this.#verifySignature(head)) ?? (isSame ? undefined : COMPUTED_ANEW);
  }

  // Verifies what was read after a link. Notes the first fault, and returns it or the last link.
  async #verifyRead(
    rootUid: string,
    start: Link,
    { checkpoint, entries, changedBody }: ReadEntries,
  ): Promise<Link | Fault> {
    const signatureFault = await findCheckpointFault(checkpoint, this.#keys);
    // Retention may have deleted the entries at the position meanwhile.
    let end = checkpoint !== undefined && checkpoint.seq > start.seq ? findStart(checkpoint) : start;
    let fault: Fault | undefined = signatureFault;
    if (entries.length === 0 && fault === undefined) fault = { seq: end.seq + 1, what: "the entry is missing" };
    for (const entry of entries) {
      if (fault !== undefined) break;
      if (entry.seq <= end.seq) continue;
      const next = verifyEntry(entry, end, rootUid);
      if ("what" in next) fault = next;
      else if (entry.seq === changedBody) fault = buildBodyFault(entry);
      else end = next;
    }
    if (fault === undefined) {
      const { seq } = this.#faulty.get(rootUid)?.before ?? end;
      if (start.seq <= seq && seq < end.seq) this.#faulty.delete(rootUid);
      return end;
    }
    this.#faulty.set(rootUid, { before: end, failure: `entry ${fault.seq}: ${fault.what}` });
    return fault;
  }

  // The operator may have put the entry back.
  async #verifyFaulty(rootUid: string): Promise<string | undefined> {
    const faulty = this.#faulty.get(rootUid);
    if (faulty === undefined) return undefined;
    const read = await this.#store.read((tx) => readEntries(tx, rootUid, faulty.before.seq));
    await this.#verifyRead(rootUid, faulty.before, read);
    const still = this.#faulty.get(rootUid)?.failure;
    // Behind it there may be others.
    if (still === undefined) this.#nextRoundMs = Number.NEGATIVE_INFINITY;
    return still;
  }

  async #verifySignature(head: AuditHead): Promise<string | undefined> {
    const state = await verifyWithNewestKeys(this.#keys, () => verifyHead(head, this.#keys.findAuditVerifyingKey));
    if (state === "unknown key") return "its head is signed with an unknown key";
    return state === "forged" ? "the signature of its head is wrong" : undefined;
  }

  // Each hash covers the one before, so entries that lead to the signed hash are those that were sealed.
  async #verifyTail(head: AuditHead): Promise<string | undefined> {
    const { rootUid } = head;
    const startSeq = head.seq - TAIL_ENTRIES;
    let end = await this.#store.read((tx) => findLink(tx, rootUid, startSeq));
    if (end === undefined) return `entry ${startSeq}: the entry is missing`;
    while (end.seq < head.seq) {
      const from: Link = end;
      const read = await this.#store.read((tx) => readEntries(tx, rootUid, from.seq));
      const next = await this.#verifyRead(rootUid, from, read);
      if ("what" in next) return this.#faulty.get(rootUid)?.failure;
      end = next;
    }
    return this.#findEndFailure(head, end);
  }
}

async function readEntries(tx: Tx, rootUid: string, afterSeq: number): Promise<ReadEntries> {
  const checkpoint = await tx.auditCheckpoints.find(rootUid);
  const entries = takeSmall(await tx.auditChain.listEntries(rootUid, afterSeq, ENTRIES_PER_READ));
  return { checkpoint, entries, changedBody: await findChangedBody(tx, entries) };
}

// Bodies are read and hashed as well.
function takeSmall(entries: readonly SealedRow[]): readonly SealedRow[] {
  let bytes = 0;
  const end = entries.findIndex(({ row }, i) => {
    bytes += row?.bodyBytes ?? 0;
    return i > 0 && bytes > BODY_BYTES_PER_READ;
  });
  return end === -1 ? entries : entries.slice(0, end);
}

// The stored link with a number, or the start of the chain where that comes later.
async function findLink(tx: Tx, rootUid: string, seq: number): Promise<Link | undefined> {
  const start = findStart(await tx.auditCheckpoints.find(rootUid));
  if (seq <= start.seq) return start;
  const [entry] = await tx.auditChain.listEntries(rootUid, seq - 1, 1);
  return entry?.seq === seq ? { seq, hash: entry.hash } : undefined;
}
