// Imports OSV records. Each is stored as a whole or not at all, so an import
// that was cut off is begun again and goes on where it was.
import { ApiError } from "../../kernel/errors.js";
import type { Awaitable, Store, Tx } from "../../store/port.js";
import { advisoriesOf } from "./mapping.js";
import { parseOsv } from "./record.js";
import {
  type ImportPlace,
  type MappedRecord,
  noOutcomes,
  type Outcomes,
  settled,
  storeRecord,
} from "./store-record.js";

/** A file that should hold a record. */
export interface RecordFile {
  readonly name: string;
  /** Its bytes. Rejects with ApiError INVALID_ARGUMENT where they cannot be had. */
  read(): Promise<Uint8Array>;
}

/** How far an import has come; the outcomes count advisories. */
export interface ImportCounts extends Outcomes {
  /** Files read. */
  records: number;
  malformed: number;
  /** Well-formed records that name no package. */
  withoutPackage: number;
}

/** What an import needs besides the files. */
export interface ImportOptions extends ImportPlace {
  readonly store: Store;
  /** Joins the first transaction that changes something. */
  readonly onFirstWrite: (tx: Tx) => Awaitable<void>;
  readonly onMalformed: (file: string, rule: string) => void;
  readonly onProgress: (counts: Readonly<ImportCounts>) => void;
}

/** How many advisories one transaction stores, and how many records are looked at together. */
const BATCH = 256;

/**
 * Imports all `files` and returns what became of them. Records that are stored already are only read.
 *
 * @throws ApiError UNAVAILABLE, ABORTED of the store; what was stored before stays.
 */
export async function importOsv(files: AsyncIterable<RecordFile>, options: ImportOptions): Promise<ImportCounts> {
  const counts: ImportCounts = { records: 0, malformed: 0, withoutPackage: 0, ...noOutcomes() };
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
    const record = await recordIn(file, options);
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

async function recordIn(file: RecordFile, { onMalformed }: ImportOptions): Promise<MappedRecord | undefined> {
  try {
    const record = parseOsv(await file.read());
    return { id: record.id, modifiedMs: record.modifiedMs, advisories: advisoriesOf(record) };
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    onMalformed(file.name, error.message);
    return undefined;
  }
}

async function storeBatch(batch: readonly MappedRecord[], options: ImportOptions, auditedBefore: boolean) {
  const { store, onFirstWrite } = options;
  const { outcomes, changed } = await store.read(async (tx) => {
    const found = { outcomes: noOutcomes(), changed: [] as MappedRecord[] };
    for (const record of batch) {
      const known = await settled(tx, options, record);
      if (known) add(found.outcomes, known);
      else found.changed.push(record);
    }
    return found;
  });
  if (changed.length === 0) return { outcomes, written: false };
  // Counted anew in every attempt: a transaction may be run again.
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
