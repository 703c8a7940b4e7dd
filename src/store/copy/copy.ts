// Copies all tables of an installation from one database to another and compares them: from SQLite to PostgreSQL, back, or
// between two of a kind. A copy may be interrupted at any point: the next run compares what the target has, and continues
// after it.
//
// tables.ts has the tables and their order, as the schema says them. prepare.ts says which databases may be copied, and marks
// the target, which no server opens until the copy is complete. cells.ts converts values, digest.ts compares rows, and
// sqlite.ts and pg.ts read and write them.
import type { MigrationProgress } from "../migrate/phases.js";
import type { CopyReader, CopySource, CopyTarget } from "./databases.js";
import { createDigest, isSameDigest, sumSlots, type TableDigest } from "./digest.js";
import { type CopiedTable, closingTables, copiedTables } from "./tables.js";

/** A table of both databases. */
export interface ComparedTable {
  readonly table: string;
  readonly source: TableDigest;
  readonly target: TableDigest;
}

export type OnProgress = (progress: MigrationProgress) => void;

export interface CopyOptions {
  /** Whether an earlier run began, so that the target may have rows. */
  readonly isResumed: boolean;
  readonly onProgress: OnProgress;
  /** Called when what an earlier run wrote is deleted, because the source has changed since. */
  readonly onRestart: () => void;
}

/** Rows of the target that are not those of the source. */
export class CopyMismatch extends Error {
  constructor(tables: readonly ComparedTable[]) {
    super(
      tables
        .map(
          ({ table, source, target }) =>
            `${table}: ${source.rows} rows ${source.sha256} in the source, ` +
            `${target.rows} rows ${target.sha256} in the target`,
        )
        .join("\n"),
    );
    this.name = "CopyMismatch";
  }
}

// The target has rows that are not the first ones of the source.
class StaleTarget extends Error {}

/**
 * Copies the source, compares every table, and only then makes the target usable.
 *
 * @returns the digests, which are equal
 * @throws CopyMismatch when a table differs; ApiError FAILED_PRECONDITION when the source was used meanwhile. The
 * target stays unfinished.
 */
export async function copyDatabase(
  source: CopySource,
  target: CopyTarget,
  options: CopyOptions,
  assertUnchanged: () => Promise<void>,
): Promise<readonly ComparedTable[]> {
  const sources = await copyRows(source, target, options);
  await target.vacuum();
  const compared = await target.transaction(() => digestCopied(target, sources, options.onProgress));
  assertEqual(compared);
  await assertUnchanged();
  return [...compared, ...(await completeCopy(source, target))];
}

/**
 * Compares every table of two installations and changes nothing.
 *
 * @throws CopyMismatch when a table differs
 */
export async function compareDatabases(
  source: CopyReader,
  target: CopyReader,
  onProgress: OnProgress,
): Promise<readonly ComparedTable[]> {
  const tables = [...copiedTables, ...closingTables];
  const report = createReport("compare", 2 * (await countRows(source, tables)), onProgress);
  const compared: ComparedTable[] = [];
  for (const table of tables) {
    const [first, second] = [await digestTable(source, table, report), await digestTable(target, table, report)];
    compared.push({ table: table.name, source: first, target: second });
  }
  assertEqual(compared);
  return compared;
}

function assertEqual(compared: readonly ComparedTable[]): void {
  const different = compared.filter(({ source, target }) => !isSameDigest(source, target));
  if (different.length > 0) throw new CopyMismatch(different);
}

async function copyRows(source: CopySource, target: CopyTarget, options: CopyOptions) {
  const { isResumed, onProgress, onRestart } = options;
  const total = await countRows(source, copiedTables);
  try {
    return await copyTables(source, target, isResumed, createReport("copy", total, onProgress));
  } catch (error) {
    if (!(error instanceof StaleTarget)) throw error;
  }
  onRestart();
  await target.clear(copiedTables);
  return copyTables(source, target, false, createReport("copy", total, onProgress));
}

async function copyTables(source: CopySource, target: CopyTarget, isResumed: boolean, report: (rows: number) => void) {
  const digests = new Map<CopiedTable, TableDigest>();
  for (const table of copiedTables) {
    const present = isResumed
      ? await target.transaction(() => digestTable(target, table, () => {}))
      : createDigest().current();
    digests.set(table, await copyTable(source, target, table, present, report));
  }
  return digests;
}

// Rows are written in the order of the primary key, each batch in one transaction, so what an earlier run wrote are the
// first rows of the source.
async function copyTable(
  source: CopySource,
  target: CopyTarget,
  table: CopiedTable,
  present: TableDigest,
  report: (rows: number) => void,
): Promise<TableDigest> {
  const digest = createDigest();
  let writing: Promise<void> = Promise.resolve();
  for await (const batch of sumSlots(table, source.rows(table))) {
    const known = batch.slice(0, Math.max(0, present.rows - digest.rows));
    digest.add(known);
    if (known.length > 0 && digest.rows === present.rows && digest.current().sha256 !== present.sha256) {
      throw new StaleTarget();
    }
    const added = batch.slice(known.length);
    digest.add(added);
    report(batch.length);
    if (added.length === 0) continue;
    // The source is read while the target writes.
    await writing;
    writing = target.insert(table, added);
    writing.catch(() => {});
  }
  await writing;
  if (digest.rows < present.rows) throw new StaleTarget();
  return digest.current();
}

async function digestCopied(
  target: CopyTarget,
  sources: ReadonlyMap<CopiedTable, TableDigest>,
  onProgress: OnProgress,
): Promise<readonly ComparedTable[]> {
  const total = [...sources.values()].reduce((sum, { rows }) => sum + rows, 0);
  const report = createReport("verify", total, onProgress);
  const compared: ComparedTable[] = [];
  for (const [table, source] of sources) {
    compared.push({ table: table.name, source, target: await digestTable(target, table, report) });
  }
  return compared;
}

// The tables that say what the database is, the mark among them, are replaced by those of the source.
async function completeCopy(source: CopySource, target: CopyTarget): Promise<readonly ComparedTable[]> {
  for (const table of copiedTables) {
    if (table.numbered !== undefined) await target.setLastNumber(table, await source.lastNumber(table));
  }
  return target.transaction(async () => {
    const compared: ComparedTable[] = [];
    await target.clear(closingTables);
    for (const table of closingTables) {
      const digest = createDigest();
      for await (const batch of source.rows(table)) {
        digest.add(batch);
        await target.insert(table, batch);
      }
      const written = await digestTable(target, table, () => {});
      compared.push({ table: table.name, source: digest.current(), target: written });
    }
    assertEqual(compared);
    return compared;
  });
}

async function digestTable(
  reader: CopyReader,
  table: CopiedTable,
  report: (rows: number) => void,
): Promise<TableDigest> {
  const digest = createDigest();
  for await (const batch of sumSlots(table, reader.rows(table))) {
    digest.add(batch);
    report(batch.length);
  }
  return digest.current();
}

async function countRows(reader: CopyReader, tables: readonly CopiedTable[]): Promise<number> {
  let total = 0;
  for (const table of tables) total += await reader.count(table);
  return total;
}

function createReport(name: string, total: number, onProgress: OnProgress): (rows: number) => void {
  let done = 0;
  return (rows) => {
    if (rows === 0) return;
    done += rows;
    onProgress({ name, done, total });
  };
}
