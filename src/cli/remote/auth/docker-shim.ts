// docker runs `docker-credential-arbor`; this makes that program, which runs us.
import { mkdir, readFile } from "node:fs/promises";
import { homedir } from "node:os";
import { join, resolve } from "node:path";
import { Code } from "@connectrpc/connect";
import { failure } from "./failure.js";
import { replaceFile } from "./replace-file.js";

/** What docker's configuration calls us. */
export const HELPER = "arbor";

const MARK = "# Written by `arbor auth configure-docker`, which writes it again when run again.";

/** Where the program goes unless told otherwise. */
export function defaultBinDir(): string {
  return join(homedir(), ".local", "bin");
}

/**
 * Writes the program.
 *
 * @param binDir the directory, made if missing
 * @param command what runs `arbor`: a program and its first arguments
 * @returns the path of the program
 * @throws ConnectError FAILED_PRECONDITION when something else is there under this name
 */
export async function writeShim(binDir: string, command: readonly string[]): Promise<string> {
  const file = join(resolve(binDir), `docker-credential-${HELPER}`);
  const before = await readFile(file, "utf8").catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return MARK;
    throw error;
  });
  if (!before.includes(MARK)) {
    throw failure(Code.FailedPrecondition, `${file} is something else; name another directory with --bin-dir`);
  }
  await mkdir(resolve(binDir), { recursive: true });
  const line = command.map((word) => `'${word.replaceAll("'", "'\\''")}'`).join(" ");
  await replaceFile(file, `#!/bin/sh\n${MARK}\nexec ${line} auth docker-credential "$@"\n`, 0o755);
  return file;
}

/** Whether programs in `directory` are found by their names. */
export function isOnPath(directory: string, path = process.env.PATH ?? ""): boolean {
  return path.split(":").some((entry) => entry !== "" && resolve(entry) === resolve(directory));
}
