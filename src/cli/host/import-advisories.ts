// `arbor advisories import`: imports OSV records into a group, while a server runs or without one.
import { open, opendir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import { crc32 } from "node:zlib";
import { type Entry, openPromise, type ZipFile } from "yauzl";
import type { Settings } from "../../config/config.js";
import { readDatabaseTls } from "../../config/tls.js";
import { groups } from "../../iam/groups/group.js";
import { auditOnHost } from "../../iam/operator/operate.js";
import { invalidArgument, notFound } from "../../kernel/errors.js";
import { randomIds } from "../../kernel/ids.js";
import { type ImportCounts, importOsv, type RecordFile } from "../../vulnerabilities/osv/import.js";
import { MAX_RECORD_BYTES } from "../../vulnerabilities/osv/record.js";
import { createProgressLine, escapeControls, type ProgressStream } from "../output/terminal.js";
import { print, withInstallation } from "./host.js";

/** How often progress is written, in milliseconds. */
const EVERY_MS = { terminal: 100, lines: 1_000 };

/**
 * Runs the command. It prints the counts to standard output and the malformed records to standard error.
 *
 * @throws ApiError NOT_FOUND for a group that does not exist, INVALID_ARGUMENT for a file that does
 * not; Error, after the import of all others, when records are malformed.
 */
export async function importCommand(
  settings: Settings,
  paths: readonly string[],
  { group, progress: always = false }: { group: string; progress?: boolean },
): Promise<void> {
  const progress = createImportProgress(process.stderr, always);
  await withInstallation(settings, "update", async ({ store, clock }) => {
    if ((await store.read((tx) => tx.groups.find(group))) === undefined) throw notFound(groups, group);
    const row = { type: "arbor.advisories.imported.v1", subjectUid: group };
    const startMs = performance.now();
    const counts = await importOsv(listRecordFiles(paths), {
      store,
      groupUid: group,
      ids: randomIds,
      onFirstWrite: (tx) => auditOnHost(tx, row, { nowMs: clock(), ids: randomIds }),
      onMalformed(file, rule) {
        progress.clear();
        process.stderr.write(`arbor: ${escapeControls(`${file}: ${rule}`)}\n`);
      },
      onProgress: progress.show,
    }).finally(progress.clear);
    printCounts(counts, performance.now() - startMs);
    if (settings.databaseUrl !== undefined && counts.created + counts.updated > 0) {
      const { vacuumDatabase } = await import("../../store/pg/vacuum.js");
      await vacuumDatabase({
        url: settings.databaseUrl,
        tls: readDatabaseTls(settings),
        name: "arbor advisories import",
      });
    }
    if (counts.malformed > 0) throw new Error(`${counts.malformed} of ${counts.records} records are malformed`);
  });
}

function printCounts(counts: ImportCounts, ms: number): void {
  const { records, malformed, withoutPackage, created, updated, withdrawn, unchanged, newer } = counts;
  print(`records: ${records} read, ${malformed} malformed, ${withoutPackage} without a package`);
  print(
    `advisories: ${created} created, ${updated} updated, ${withdrawn} withdrawn, ${unchanged} unchanged, ${newer} newer here`,
  );
  const rate = Math.round(records / (ms / 1_000));
  const peakMb = Math.round(process.resourceUsage().maxRSS / 1024);
  print(`took ${(ms / 1_000).toFixed(1)} s, ${rate} records/s, peak memory ${peakMb} MB`);
}

interface ImportProgress {
  show(counts: Readonly<ImportCounts>): void;
  /** Removes the line before other text is written to the same terminal. */
  clear(): void;
}

/**
 * Creates the progress of an import. It has no total, because directories and archives are read one entry at a time.
 *
 * @param always write progress also where `stream` is not a terminal, as a line per second
 */
function createImportProgress(stream: ProgressStream, always: boolean): ImportProgress {
  const isTerminal = stream.isTTY === true;
  const line = createProgressLine(stream);
  let nextMs = 0;
  return {
    clear: line.clear,
    show({ records, created, updated, unchanged }) {
      if (!isTerminal && !always) return;
      const nowMs = performance.now();
      if (nowMs < nextMs) return;
      nextMs = nowMs + (isTerminal ? EVERY_MS.terminal : EVERY_MS.lines);
      line.show(`${records} records, ${created} created, ${updated} updated, ${unchanged} unchanged`);
    },
  };
}

// The files of an import, one at a time: single files, and those of directories and zip archives.

/**
 * Lists the files at `paths`, and the files in directories and zip archives whose names end in `.json`. Directories are
 * walked in depth, but symbolic links are not followed. `read` throws for an unreadable file.
 *
 * @throws ApiError INVALID_ARGUMENT for a path without a file, before any file is read.
 */
async function* listRecordFiles(paths: readonly string[]): AsyncIterable<RecordFile> {
  const kinds = await Promise.all(paths.map(detectKind));
  for (const [i, path] of paths.entries()) {
    if (kinds[i] === "directory") yield* readDirectory(path);
    else if (kinds[i] === "zip") yield* readZip(path);
    else yield createDiskFile(path);
  }
}

async function detectKind(path: string): Promise<"directory" | "zip" | "file"> {
  try {
    if ((await stat(path)).isDirectory()) return "directory";
    const file = await open(path);
    try {
      const { buffer: start } = await file.read(Buffer.alloc(2), 0, 2, 0);
      return start.toString("latin1") === "PK" ? "zip" : "file";
    } finally {
      await file.close();
    }
  } catch (error) {
    throw invalidArgument({ field: "file", subject: path, rule: `cannot be read (${describeCause(error)})` });
  }
}

async function* readDirectory(path: string): AsyncIterable<RecordFile> {
  try {
    for await (const entry of await opendir(path)) {
      const inside = join(path, entry.name);
      if (entry.isDirectory()) yield* readDirectory(inside);
      else if (entry.isFile() && entry.name.endsWith(".json")) yield createDiskFile(inside);
    }
  } catch (error) {
    yield unreadable(path, error);
  }
}

function createDiskFile(name: string): RecordFile {
  return {
    name,
    read: () =>
      wrapReadErrors(async () => {
        if ((await stat(name)).size > MAX_RECORD_BYTES) throw tooLarge();
        return readFile(name);
      }),
  };
}

// Entries are read one at a time, so that memory stays bounded.
async function* readZip(path: string): AsyncIterable<RecordFile> {
  try {
    const zip = await openPromise(path, { lazyEntries: true });
    for await (const entry of zip.eachEntry()) {
      if (entry.fileName.endsWith(".json")) yield createArchiveFile(path, zip, entry);
    }
  } catch (error) {
    yield unreadable(path, error);
  }
}

function createArchiveFile(path: string, zip: ZipFile, entry: Entry): RecordFile {
  return {
    name: `${path}:${entry.fileName}`,
    read: () =>
      wrapReadErrors(async () => {
        if (entry.uncompressedSize > MAX_RECORD_BYTES) throw tooLarge();
        const bytes = await buffer(await zip.openReadStreamPromise(entry));
        if (crc32(bytes) !== entry.crc32) throw new Error("its checksum does not match");
        return bytes;
      }),
  };
}

function tooLarge(): Error {
  return new Error(`more than ${MAX_RECORD_BYTES} bytes`);
}

function unreadable(name: string, error: unknown): RecordFile {
  return { name, read: () => wrapReadErrors(() => Promise.reject(error)) };
}

async function wrapReadErrors(read: () => Promise<Uint8Array>): Promise<Uint8Array> {
  try {
    return await read();
  } catch (error) {
    throw invalidArgument({ field: "record", rule: `cannot be read (${describeCause(error)})` });
  }
}

function describeCause(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException;
  return code ?? message;
}
