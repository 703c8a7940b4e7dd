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

/** A directory like {@link tempDir} for a database of which no test reads the disk: in memory if the machine has room. */
export function memoryDir(): string {
  return newDirectoryIn(hasMemory() ? MEMORY : tmpdir());
}

function newDirectoryIn(parent: string): string {
  const directory = mkdtempSync(join(parent, "arbor-test-"));
  made.push(directory);
  return directory;
}

// Linux has it; a container often has one of 64 MiB, which the databases of one run may fill.
const MEMORY = "/dev/shm";
const ROOM_BYTES = 2 ** 30;

// Every commit waits until a disk has it, which costs more than the rest of a small write.
function hasMemory(): boolean {
  try {
    const { bavail, bsize } = statfsSync(MEMORY);
    return bavail * bsize >= ROOM_BYTES;
  } catch {
    return false;
  }
}
