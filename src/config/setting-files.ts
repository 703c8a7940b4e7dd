// The files that settings name. Every error says which setting named the file, and its path.
import {
  accessSync,
  closeSync,
  constants,
  fstatSync,
  lstatSync,
  openSync,
  readFileSync,
  type Stats,
  statSync,
} from "node:fs";
import { dirname, resolve } from "node:path";
import { describeDiskFault } from "../kernel/disk-errors.js";
import { unavailable } from "../kernel/errors.js";
import { describeContent, describeExposure, describeFileFault, describeReadError } from "../kernel/files.js";
import type { Setting } from "./setting-types.js";

const { R_OK, W_OK, X_OK } = constants;

/** Far more than any of these files has; a database that is named by mistake is not read. */
const MAX_BYTES = 16 * 2 ** 20;

/**
 * Checks that a file can be read and that its content is right. A pipe is not opened: what is read here would be missing
 * where the setting is used.
 *
 * @param label what named the file, such as `--tls-cert` or `ARBOR_TLS_CERT`
 * @param problems gets a line if anything is wrong
 * @throws ApiError UNAVAILABLE when the disk does not read it
 */
export function checkSettingFile(setting: Setting<unknown>, file: string, label: string, problems: string[]): void {
  readChecked(setting, file, label, problems, (stats) => setting.checkContent !== undefined && stats.isFile());
}

/**
 * Reads the file of a setting.
 *
 * @returns its content; undefined if anything is wrong, which `problems` gets a line for
 * @throws ApiError UNAVAILABLE when the disk does not read it
 */
export function readSettingFile(
  setting: Setting<unknown>,
  file: string,
  label: string,
  problems: string[],
): Buffer | undefined {
  return readChecked(setting, file, label, problems, () => true);
}

function readChecked(
  { checkContent, isPrivate }: Setting<unknown>,
  file: string,
  label: string,
  problems: string[],
  isRead: (stats: Stats) => boolean,
): Buffer | undefined {
  let content: Buffer | undefined;
  let descriptor: number | undefined;
  try {
    accessSync(file, R_OK);
    let stats = statSync(file);
    if (stats.isDirectory()) throw Object.assign(new Error(), { code: "EISDIR" });
    if (isRead(stats)) {
      descriptor = openSync(file, "r");
      // Another file may have the name by now.
      stats = fstatSync(descriptor);
    }
    const exposure = isPrivate ? describeExposure(stats) : undefined;
    if (exposure !== undefined) {
      problems.push(`${label}: ${file} ${exposure}`);
      return undefined;
    }
    if (stats.size > MAX_BYTES) {
      problems.push(`${label}: ${file} must have at most 16 MiB`);
      return undefined;
    }
    if (descriptor !== undefined) content = readFileSync(descriptor);
  } catch (error) {
    const problem = `${label}: ${describeReadError(file, error)}`;
    assertDisk(problem, error);
    problems.push(problem);
    return undefined;
  } finally {
    if (descriptor !== undefined) closeSync(descriptor);
  }
  try {
    if (content !== undefined) checkContent?.(content);
    return content;
  } catch (error) {
    problems.push(...describeContent(file, error as Error).map((problem) => `${label}: ${problem}`));
    return undefined;
  }
}

/**
 * Checks that a server can use its data directory, or create it.
 *
 * @param label what named the directory, such as `--data`
 * @param problems gets a line if it cannot
 * @throws ApiError UNAVAILABLE when the disk is lost or read-only
 */
export function checkDataDirectory(directory: string, label: string, problems: string[]): void {
  try {
    const found = findExisting(directory);
    if (!statSync(found).isDirectory()) throw Object.assign(new Error(), { code: "EEXIST", syscall: "mkdir" });
    accessSync(found, found === directory ? R_OK | W_OK | X_OK : W_OK | X_OK);
  } catch (error) {
    const problem = `${label}: cannot use ${directory}: ${describeFileFault(error) ?? String(error)}`;
    assertDisk(problem, error);
    problems.push(problem);
  }
}

// A disk that is lost, read-only or full is no wrong setting, and a server that is started again later may find it well.
function assertDisk(problem: string, error: unknown): void {
  if (describeDiskFault(error) !== undefined) throw unavailable(problem, undefined, error);
}

// A server creates what is missing, so the rights to the closest directory that exists decide.
function findExisting(path: string): string {
  if (lstatSync(path, { throwIfNoEntry: false }) !== undefined) return path;
  const parent = dirname(resolve(path));
  return parent === resolve(path) ? path : findExisting(parent);
}
