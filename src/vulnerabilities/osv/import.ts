// Imports OSV records. Each record is stored in one transaction, so an interrupted import can run again and skips
// what is stored.
import { ApiError } from "../../kernel/errors.js";
import type { Ids } from "../../kernel/ids.js";
import { parentOf } from "../../kernel/uidp.js";
import { type AdvisoryRow, advisoryKind } from "../../store/advisories/advisories.js";
import type { Store } from "../../store/store.js";
import type { AdvisoryEventRow } from "../../store/tables/advisories.js";
import type { Tx } from "../../store/transaction.js";
import { buildEventRow } from "../advisories/advisory.js";
import { insertAdvisory, replaceAdvisory } from "../advisories/advisory-operations.js";
import { formatSourcePrefix, type MappedAdvisory, mapRecord, type TimedEvent } from "./mapping.js";
import { parseOsv } from "./record.js";

export interface RecordFile {
  readonly name: string;
  /** Reads its bytes. Rejects with ApiError INVALID_ARGUMENT where that is not possible. */
  read(): Promise<Uint8Array>;
}

/** The progress of an import; the outcomes count advisories. */
export interface ImportCounts extends Outcomes {
  /** Files read. */
  records: number;
  malformed: number;
  /** Valid records without a package. */
  withoutPackage: number;
}

export interface ImportOptions extends ImportTarget {
  readonly store: Store;
  /** Runs in the first transaction that changes something. */
  readonly onFirstWrite: (tx: Tx) => Promise<void>;
  readonly onMalformed: (file: string, rule: string) => void;
  readonly onProgress: (counts: Readonly<ImportCounts>) => void;
}

/** The number of advisories that one transaction stores. */
const BATCH = 256;

/**
 * Imports all `files`. Records that are stored already are only read.
 *
 * @throws ApiError UNAVAILABLE, ABORTED of the store; stored records stay.
 */
export async function importOsv(files: AsyncIterable<RecordFile>, options: ImportOptions): Promise<ImportCounts> {
  const counts: ImportCounts = { records: 0, malformed: 0, withoutPackage: 0, ...createOutcomes() };
  let batch: MappedRecord[] = [];
  let size = 0;
  let written = false;
  const flush = async () => {
    const stored = await storeBatch(batch, options, written);
    written ||= stored.written;
    add(counts, stored.outcomes);
    batch = [];
    size = 0;
    options.onProgress(counts);
  };
  for await (const file of files) {
    counts.records++;
    const record = await readRecord(file, options);
    if (record === undefined) {
      counts.malformed++;
      continue;
    }
    if (record.advisories.length === 0) counts.withoutPackage++;
    batch.push(record);
    size += Math.max(1, record.advisories.length);
    if (size >= BATCH) await flush();
  }
  await flush();
  return counts;
}

async function readRecord(file: RecordFile, { onMalformed }: ImportOptions): Promise<MappedRecord | undefined> {
  try {
    const record = parseOsv(await file.read());
    return { id: record.id, modifiedMs: record.modifiedMs, advisories: mapRecord(record) };
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    onMalformed(file.name, error.message);
    return undefined;
  }
}

async function storeBatch(batch: readonly MappedRecord[], options: ImportOptions, auditedBefore: boolean) {
  const { store, onFirstWrite } = options;
  const { outcomes, changed } = await store.read(async (tx) => {
    const found = { outcomes: createOutcomes(), changed: [] as MappedRecord[] };
    for (const record of batch) {
      const known = await findUnchanged(tx, options, record);
      if (known) add(found.outcomes, known);
      else found.changed.push(record);
    }
    return found;
  });
  if (changed.length === 0) return { outcomes, written: false };
  // Counted anew by each attempt, because a transaction may run several times.
  return store.write(async (tx) => {
    const all = { ...outcomes };
    for (const record of changed) await storeRecord(tx, options, record, all);
    const written = all.created + all.updated + all.withdrawn > 0;
    if (written && !auditedBefore) await onFirstWrite(tx);
    return { outcomes: all, written };
  });
}

function add(counts: Outcomes, more: Outcomes): void {
  for (const name of Object.keys(more) as (keyof Outcomes)[]) counts[name] += more[name];
}

/** The group of imported advisories. */
export interface ImportTarget {
  readonly groupUid: string;
  readonly ids: Ids;
}

interface MappedRecord {
  readonly id: string;
  readonly modifiedMs: number;
  readonly advisories: readonly MappedAdvisory[];
}

/** The number of advisories by the outcome of their import. */
export interface Outcomes {
  created: number;
  updated: number;
  /** The record does not name their package any more. */
  withdrawn: number;
  unchanged: number;
  /** The stored advisory is newer than the record, so it stays. */
  newer: number;
}

function createOutcomes(): Outcomes {
  return { created: 0, updated: 0, withdrawn: 0, unchanged: 0, newer: 0 };
}

// The last segment of the uid of an imported event; other events have random ones.
const IMPORTED_EVENT = /\/000000000000[0-9a-f]{4}$/;
// More than the packages of any record.
const MAX_PACKAGES = 100_000;

// The outcomes of a record that needs no write; undefined where something must be stored.
async function findUnchanged(tx: Tx, target: ImportTarget, record: MappedRecord): Promise<Outcomes | undefined> {
  const outcomes = createOutcomes();
  for (const { advisory } of record.advisories) {
    const before = await tx.table(advisoryKind).findBySource(target.groupUid, advisory.sourceKey);
    const outcome = before && findOutcome(before, advisory);
    if (outcome === undefined) return undefined;
    outcomes[outcome]++;
  }
  // A record without packages may still have advisories to withdraw. Otherwise a change of the record shows them.
  const hasOrphans = record.advisories.length === 0 && (await listOrphans(tx, target, record)).length > 0;
  return hasOrphans ? undefined : outcomes;
}

function findOutcome(before: AdvisoryRow, { sourceHash, updateTimeMs }: MappedAdvisory["advisory"]) {
  if (before.sourceHash === sourceHash) return "unchanged";
  return before.updateTimeMs > updateTimeMs ? "newer" : undefined;
}

// Stores the changes of a record and adds to `outcomes`.
async function storeRecord(tx: Tx, target: ImportTarget, record: MappedRecord, outcomes: Outcomes): Promise<void> {
  for (const mapped of record.advisories) outcomes[await storeAdvisory(tx, target, mapped)]++;
  for (const row of await listOrphans(tx, target, record)) {
    await replaceAdvisory(tx, {
      ...row,
      // Without a hash, a record that names the package again updates this row.
      sourceHash: "",
      deleteTimeMs: record.modifiedMs,
      updateTimeMs: record.modifiedMs,
    });
    outcomes.withdrawn++;
  }
}

async function storeAdvisory(tx: Tx, { groupUid, ids }: ImportTarget, mapped: MappedAdvisory): Promise<keyof Outcomes> {
  const { advisory, events } = mapped;
  const before = await tx.table(advisoryKind).findBySource(groupUid, advisory.sourceKey);
  if (before === undefined) {
    const uid = ids.newUid(groupUid);
    await insertAdvisory(tx, { ...advisory, uid, groupUid }, advisory.sourceKey, buildEventRows(uid, events));
    return "created";
  }
  const outcome = findOutcome(before, advisory);
  if (outcome !== undefined) return outcome;
  const { uid } = before;
  const others = (await tx.table(advisoryKind).listEvents([uid])).filter((event) => !IMPORTED_EVENT.test(event.uid));
  await replaceAdvisory(tx, { ...advisory, uid, groupUid }, [...others, ...buildEventRows(uid, events)]);
  return "updated";
}

// The uids ascend, because they order events of the same time.
function buildEventRows(advisoryUid: string, events: readonly TimedEvent[]): AdvisoryEventRow[] {
  return events.map(({ event, timeMs }, i) =>
    buildEventRow(advisoryUid, `${advisoryUid}/${i.toString(16).padStart(16, "0")}`, event, timeMs),
  );
}

async function listOrphans(tx: Tx, { groupUid }: ImportTarget, record: MappedRecord): Promise<AdvisoryRow[]> {
  const prefix = formatSourcePrefix(record.id);
  const named = new Set(record.advisories.map(({ advisory }) => advisory.sourceKey));
  const orphans: AdvisoryRow[] = [];
  for (const uid of await tx.table(advisoryKind).findUidsWhere("legacyAdvisoryId", record.id, MAX_PACKAGES)) {
    if (parentOf(uid) !== groupUid) continue;
    const row = await tx.table(advisoryKind).find(uid);
    if (row === undefined || named.has(row.sourceKey) || !row.sourceKey.startsWith(prefix)) continue;
    if (row.deleteTimeMs === null && row.updateTimeMs <= record.modifiedMs) orphans.push(row);
  }
  return orphans;
}
