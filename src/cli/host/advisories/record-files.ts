// The files an import reads: named ones, those of directories and those within
// zip archives, one at a time.
import { open, opendir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import { crc32 } from "node:zlib";
import { type Entry, openPromise, type ZipFile } from "yauzl";
import { invalidArgument } from "../../../kernel/errors.js";
import type { RecordFile } from "../../../vulnerabilities/osv/import.js";
import { MAX_RECORD_BYTES } from "../../../vulnerabilities/osv/record.js";

/**
 * The files at `paths`: of directories and zip archives those whose names end in `.json`, of
 * directories in all their depth but not through symbolic links. What cannot be read is a file that
 * says so when it is read.
 *
 * @throws ApiError INVALID_ARGUMENT, before anything is read, when there is nothing at a path.
 */
export async function* recordFiles(paths: readonly string[]): AsyncIterable<RecordFile> {
  const kinds = await Promise.all(paths.map(kindOf));
  for (const [i, path] of paths.entries()) {
    if (kinds[i] === "directory") yield* inDirectory(path);
    else if (kinds[i] === "zip") yield* inZip(path);
    else yield onDisk(path);
  }
}

async function kindOf(path: string): Promise<"directory" | "zip" | "file"> {
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
    throw invalidArgument({ field: "file", description: `${path} cannot be read (${causeOf(error)})` });
  }
}

async function* inDirectory(path: string): AsyncIterable<RecordFile> {
  try {
    for await (const entry of await opendir(path)) {
      const inside = join(path, entry.name);
      if (entry.isDirectory()) yield* inDirectory(inside);
      else if (entry.isFile() && entry.name.endsWith(".json")) yield onDisk(inside);
    }
  } catch (error) {
    yield unreadable(path, error);
  }
}

function onDisk(name: string): RecordFile {
  return {
    name,
    read: () =>
      orRefused(async () => {
        if ((await stat(name)).size > MAX_RECORD_BYTES) throw tooLarge();
        return readFile(name);
      }),
  };
}

// The directory of an archive stands at its end and is read entry by entry, as the records are.
async function* inZip(path: string): AsyncIterable<RecordFile> {
  try {
    const zip = await openPromise(path, { lazyEntries: true });
    for await (const entry of zip.eachEntry()) {
      if (entry.fileName.endsWith(".json")) yield inArchive(path, zip, entry);
    }
  } catch (error) {
    yield unreadable(path, error);
  }
}

function inArchive(path: string, zip: ZipFile, entry: Entry): RecordFile {
  return {
    name: `${path}:${entry.fileName}`,
    read: () =>
      orRefused(async () => {
        if (entry.uncompressedSize > MAX_RECORD_BYTES) throw tooLarge();
        const bytes = await buffer(await zip.openReadStreamPromise(entry));
        if (crc32(bytes) !== entry.crc32) throw new Error("its checksum is another");
        return bytes;
      }),
  };
}

function tooLarge(): Error {
  return new Error(`more than ${MAX_RECORD_BYTES} bytes`);
}

function unreadable(name: string, error: unknown): RecordFile {
  return { name, read: () => orRefused(() => Promise.reject(error)) };
}

async function orRefused(read: () => Promise<Uint8Array>): Promise<Uint8Array> {
  try {
    return await read();
  } catch (error) {
    throw invalidArgument({ field: "record", description: `record cannot be read (${causeOf(error)})` });
  }
}

function causeOf(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException;
  return code ?? message;
}
