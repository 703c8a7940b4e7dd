// How the service reaches PostgreSQL: TLS as libpq has it, under settings of its own.
import type { ConnectionOptions } from "node:tls";
import { SettingsError } from "./config.js";
import { readSettingFile } from "./setting-files.js";
import { labelOf } from "./setting-labels.js";
import { type Settings, settings } from "./settings.js";
import { DATABASE_PAIR, readTlsPair } from "./tls-files.js";

/** TLS to PostgreSQL: options of `tls.connect`, or false for none. */
export type DatabaseTls = ConnectionOptions | false;

/**
 * Reads how connections to PostgreSQL are encrypted.
 *
 * @returns undefined where the URL of the database says it
 * @throws SettingsError naming each file that cannot be used
 */
export function readDatabaseTls(values: Settings): DatabaseTls | undefined {
  const { databaseTlsMode: mode } = values;
  if (mode === undefined) return undefined;
  if (mode === "disable") return false;
  const problems: string[] = [];
  const { databaseTlsCa: file } = values;
  const label = labelOf(values, "databaseTlsCa");
  const ca = file === undefined ? undefined : readSettingFile(settings.databaseTlsCa, file, label, problems);
  const identity = readTlsPair(values, DATABASE_PAIR, problems);
  if (problems.length > 0) throw new SettingsError(problems);
  return {
    ...(ca !== undefined && { ca }),
    ...identity,
    // As in libpq, `require` with authorities is `verify-ca`.
    ...(mode === "require" && ca === undefined && { rejectUnauthorized: false }),
    ...(mode !== "verify-full" && { checkServerIdentity: () => undefined }),
  };
}
