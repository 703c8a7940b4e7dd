// Cuts the power of a server on SQLite: its file system stops writing at once, and what the disk has is what is there
// afterwards. The file system is ext4 in a file. Needs root, and a mount namespace of its own.
import { execFileSync } from "node:child_process";
import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { PROJECT } from "../support/project.js";
import { ServedDirectory } from "./kill9-server.js";

/** A file system is used for this many cuts: what survived one must survive the next. */
const CUTS_PER_FILE_SYSTEM = 10;
/** EXT4_IOC_SHUTDOWN without a flush of the journal, which Node has no call for. */
const SHUT_DOWN = `
import fcntl, os, struct, sys
directory = os.open(sys.argv[1], os.O_RDONLY)
fcntl.ioctl(directory, 0x8004587d, struct.pack("I", 2))
`;

export interface PowerCutsOptions {
  /** An empty directory. */
  readonly directory: string;
  readonly cuts: number;
  /** SQLite syncs nothing, so that acknowledged writes are lost; ends with the first. */
  readonly control: boolean;
}

export interface PowerCuts {
  readonly cuts: number;
  readonly acknowledged: number;
  readonly lost: readonly string[];
  readonly problems: readonly string[];
}

/** Runs a campaign. */
export async function runPowerCuts({ directory, cuts, control }: PowerCutsOptions): Promise<PowerCuts> {
  const preload = control ? ["--import", pathToFileURL(join(PROJECT, "test/e2e/no-sync.mjs")).href] : [];
  const [image, mount] = [join(directory, "disk"), join(directory, "mount")];
  mkdirSync(mount);
  const total = { cuts: 0, acknowledged: 0, lost: [] as string[], problems: [] as string[] };
  let served: ServedDirectory | undefined;
  const isDone = () => total.cuts === cuts || (control && total.lost.length > 0);
  try {
    while (!isDone()) {
      if (total.cuts % CUTS_PER_FILE_SYSTEM === 0) {
        if (served !== undefined) execFileSync("umount", [mount]);
        rmSync(image, { force: true });
        execFileSync("truncate", ["--size=256M", image]);
        execFileSync("mkfs.ext4", ["-q", "-F", image]);
        execFileSync("mount", ["-o", "loop", image, mount]);
        served = new ServedDirectory(join(mount, "data"), preload);
        await served.prepare();
        // What is cut is the writes of the API, not the creation of the database.
        execFileSync("sync", ["--file-system", mount]);
      }
      const run = await (served as ServedDirectory).run(async (kill) => {
        execFileSync("python3", ["-c", SHUT_DOWN, mount]);
        kill();
        await untilUnmounted(mount);
        execFileSync("mount", ["-o", "loop", image, mount]);
      });
      total.cuts++;
      total.acknowledged += run.acknowledged;
      total.lost.push(...run.lost);
      total.problems.push(...run.problems);
      const isLast = total.cuts % CUTS_PER_FILE_SYSTEM === 0 || isDone();
      if (isLast && !control) total.problems.push(...(await (served as ServedDirectory).verify()));
    }
  } finally {
    if (served !== undefined) execFileSync("umount", ["--lazy", mount]);
  }
  return total;
}

// Until the killed process is gone, its open files keep the file system.
async function untilUnmounted(mount: string): Promise<void> {
  for (let tries = 0; ; tries++) {
    try {
      execFileSync("umount", [mount], { stdio: "ignore" });
      return;
    } catch (error) {
      if (tries === 100) throw error;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
}
