// The files of an import, one at a time: single files, and those of directories and zip archives.
import { open, opendir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import { crc32 } from "node:zlib";
import { type Entry, openPromise, type ZipFile } from "yauzl";
import { invalidArgument } from "../../kernel/errors.js";
import type { RecordFile } from "../../vulnerabilities/osv/import.js";
import { MAX_RECORD_BYTES } from "../../vulnerabilities/osv/record.js";

/**
 * Lists the files at `paths`, and the files in directories and zip archives whose names end in `.json`. Directories are
 * walked in depth, but symbolic links are not followed. `read` throws for an unreadable file.
 *
 * @throws ApiError INVALID_ARGUMENT for a path without a file, before any file is read.
 */
export async function* listRecordFiles(paths: readonly string[]): AsyncIterable<RecordFile> {
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
