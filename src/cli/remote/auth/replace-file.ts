import { open, rename, rm } from "node:fs/promises";
import { dirname } from "node:path";

/**
 * Writes a file so that it holds either what it held or all of `text`, whenever the process or the
 * machine stops. Of two at once, one fails.
 *
 * @param mode the permissions of the file, whatever they were and whatever the umask is
 */
export async function replaceFile(file: string, text: string, mode: number): Promise<void> {
  const draft = `${file}.new`;
  // Left by a process that was killed.
  await rm(draft, { force: true });
  try {
    const handle = await open(draft, "wx", 0o600);
    try {
      await handle.writeFile(text);
      await handle.chmod(mode);
      await handle.sync();
    } finally {
      await handle.close();
    }
    await rename(draft, file);
  } catch (error) {
    await rm(draft, { force: true });
    throw error;
  }
  await syncFolder(dirname(file));
}

// Makes the new name last. Some file systems do not sync directories; what was written is in place.
async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, "r");
  await handle.sync().catch(() => {});
  await handle.close();
}
