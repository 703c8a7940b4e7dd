// The files that settings name. Every error says which setting named the file, and its path.
import { accessSync, constants, readFileSync, type Stats, statSync } from "node:fs";
import { cannotRead, describeExposure } from "../kernel/file-error.js";
import type { Setting } from "./setting-types.js";

/**
 * Checks that a file can be read and that its content is right. A pipe is not opened: what is read here would be missing
 * where the setting is used.
 *
 * @param label what named the file, such as `--tls-cert` or `ARBOR_TLS_CERT`
 * @param problems gets a line if anything is wrong
 */
export function checkSettingFile(setting: Setting<unknown>, file: string, label: string, problems: string[]): void {
  readChecked(setting, file, label, problems, (stats) => setting.checkContent !== undefined && stats.isFile());
}

/**
 * Reads the file of a setting.
 *
 * @returns its content; undefined if anything is wrong, which `problems` gets a line for
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
  try {
    accessSync(file, constants.R_OK);
    const stats = statSync(file);
    if (stats.isDirectory()) throw Object.assign(new Error(), { code: "EISDIR" });
    const exposure = isPrivate ? describeExposure(stats) : undefined;
    if (exposure !== undefined) {
      problems.push(`${label}: ${file} ${exposure}`);
      return undefined;
    }
    if (isRead(stats)) content = readFileSync(file);
  } catch (error) {
    problems.push(`${label}: ${cannotRead(file, error)}`);
    return undefined;
  }
  try {
    if (content !== undefined) checkContent?.(content);
    return content;
  } catch (error) {
    problems.push(`${label}: ${file} ${(error as Error).message}`);
    return undefined;
  }
}
