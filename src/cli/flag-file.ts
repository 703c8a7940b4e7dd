// The files that flags name. One that cannot be read is a wrong flag in every command: the error says which flag, and the
// whole path, because a relative one may begin elsewhere than where the user thinks, such as with `npm --prefix`.
import { constants } from "node:fs";
import { access, readFile, stat } from "node:fs/promises";
import { resolve } from "node:path";
import { text } from "node:stream/consumers";
import { describeReadError } from "../kernel/files.js";
import { invalidFlag } from "./errors.js";

/**
 * Reads the file that a flag names.
 *
 * @throws CommandError INVALID_ARGUMENT when it cannot be read
 */
export async function readFlagFile(flag: string, file: string): Promise<string> {
  return (await findFlagFile(flag, file)) ?? rejectMissing(flag, file);
}

/** Reads a file as {@link readFlagFile}, or standard input for `-`. */
export function readFlagFileOrInput(flag: string, file: string): Promise<string> {
  return file === "-" ? text(process.stdin) : readFlagFile(flag, file);
}

/** Reads a file as {@link readFlagFile}; undefined for one that does not exist. */
export async function findFlagFile(flag: string, file: string): Promise<string | undefined> {
  try {
    return await readFile(file, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw invalidFlag(flag, describeReadError(resolve(file), error));
  }
}

/**
 * Checks that a file can be read which is read later, and maybe again. It is not opened: it may be a pipe.
 *
 * @throws CommandError INVALID_ARGUMENT when it cannot be read
 */
export async function checkFlagFile(flag: string, file: string): Promise<void> {
  try {
    await access(file, constants.R_OK);
    if ((await stat(file)).isDirectory()) throw Object.assign(new Error(), { code: "EISDIR" });
  } catch (error) {
    throw invalidFlag(flag, describeReadError(resolve(file), error));
  }
}

function rejectMissing(flag: string, file: string): never {
  throw invalidFlag(flag, describeReadError(resolve(file), { code: "ENOENT" }));
}
