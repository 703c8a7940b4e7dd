import { mkdtempSync, rmSync, statfsSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const made: string[] = [];
process.once("exit", () => {
  for (const directory of made) rmSync(directory, { recursive: true, force: true });
});

/** A new empty directory that goes away with the process. */
export function tempDir(): string {
  return newDirectoryIn(tmpdir());
}

/**
 * A directory like {@link tempDir} for what no test needs on a disk, such as a database: in memory if the machine has room.
 *
 * @param room what must be free, in bytes
 */
export function memoryDir(room = 2 ** 30): string {
  return newDirectoryIn(hasMemory(room) ? MEMORY : tmpdir());
}

function newDirectoryIn(parent: string): string {
  const directory = mkdtempSync(join(parent, "arbor-test-"));
  made.push(directory);
  return directory;
}

// Linux has it; a container often has one of 64 MiB, which the databases of one run may fill.
const MEMORY = "/dev/shm";

// Every commit waits until a disk has it, which costs more than the rest of a small write.
function hasMemory(room: number): boolean {
  try {
    const { bavail, bsize } = statfsSync(MEMORY);
    return bavail * bsize >= room;
  } catch {
    return false;
  }
}
