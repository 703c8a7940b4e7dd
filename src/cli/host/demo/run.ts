// `arbor demo`: starts it, says what to do with it, and waits.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { untilStopped } from "../until-stopped.js";
import { startDemo } from "./demo.js";
import { announcement } from "./walkthrough.js";

/** The flags of `arbor demo`. */
export interface DemoFlags {
  readonly data?: string;
  readonly listen: string;
}

/**
 * Runs the demo until SIGTERM or SIGINT; a second signal ends it at once. Standard output carries what
 * to try.
 *
 * @throws SettingsError for an address that is not of this machine alone
 * @throws Error when the address is taken, or the directory holds something else
 */
export async function demoCommand({ data, listen }: DemoFlags): Promise<void> {
  const directory = data === undefined ? passingDirectory() : resolve(data);
  const demo = await startDemo({ data: directory, listen });
  // Before anybody can know that there is something to stop.
  const stopped = untilStopped();
  process.stdout.write(announcement(demo, { kept: data !== undefined }));
  await stopped;
  await demo.stop();
}

// However the process ends, short of being killed.
function passingDirectory(): string {
  const directory = mkdtempSync(join(tmpdir(), "arbor-demo-"));
  process.once("exit", () => rmSync(directory, { recursive: true, force: true }));
  return directory;
}
