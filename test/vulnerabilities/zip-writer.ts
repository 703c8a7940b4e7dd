// Writes zip archives (APPNOTE 6.3), of more than 65,535 entries as well, which
// the archives of OSV have.
import { closeSync, openSync, writeSync } from "node:fs";
import { crc32, deflateRawSync } from "node:zlib";

/** A file of an archive. */
export interface ZipEntry {
  readonly name: string;
  readonly content: string | Uint8Array;
}

/** Writes an archive entry by entry. */
export function writeZip(path: string, entries: Iterable<ZipEntry>): void {
  const file = openSync(path, "w");
  const central: Buffer[] = [];
  let offset = 0;
  const put = (...parts: Uint8Array[]) => {
    for (const part of parts) offset += writeSync(file, part);
  };
  for (const { name, content } of entries) {
    const [plain, path] = [Buffer.from(content), Buffer.from(name)];
    const packed = deflateRawSync(plain, { level: 1 });
    // Version 4.5, no flags but UTF-8 names, deflated, no time, checksum and sizes, lengths of name and extra field.
    const header = fields([45, 2], [0x800, 2], [8, 2], [0, 4], [crc32(plain), 4], [packed.length, 4]);
    const sizes = fields([plain.length, 4], [path.length, 2], [0, 2]);
    central.push(
      Buffer.concat([fields([0x02014b50, 4], [45, 2]), header, sizes, fields([0, 6], [0, 4], [offset, 4]), path]),
    );
    put(fields([0x04034b50, 4]), header, sizes, path, packed);
  }
  const start = offset;
  for (const entry of central) put(entry);
  const size = offset - start;
  const end = offset;
  const counts: [number, number][] = [
    [central.length, 8],
    [central.length, 8],
    [size, 8],
    [start, 8],
  ];
  put(fields([0x06064b50, 4], [44, 8], [45, 2], [45, 2], [0, 4], [0, 4], ...counts));
  put(fields([0x07064b50, 4], [0, 4], [end, 8], [1, 4]));
  put(fields([0x06054b50, 4], [0, 4], [0xffff, 2], [0xffff, 2], [0xffffffff, 4], [0xffffffff, 4], [0, 2]));
  closeSync(file);
}

// Numbers in little endian, each with its size in bytes.
function fields(...values: readonly (readonly [value: number, bytes: number])[]): Buffer {
  return Buffer.concat(
    values.map(([value, bytes]) => {
      const field = Buffer.alloc(bytes);
      field.writeUIntLE(value, 0, Math.min(bytes, 6));
      return field;
    }),
  );
}
