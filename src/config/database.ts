// How the service reaches PostgreSQL: TLS as libpq has it, under settings of its own.
import type { ConnectionOptions } from "node:tls";
import { SettingsError } from "./config.js";
import { isKeyOf } from "./pem.js";
import { readSettingFile } from "./setting-files.js";
import { labelOf } from "./setting-labels.js";
import { type Settings, settings } from "./settings.js";

/** TLS to PostgreSQL: options of `tls.connect`, or false for none. */
export type DatabaseTls = ConnectionOptions | false;

type FileName = "databaseTlsCa" | "databaseTlsCert" | "databaseTlsKey";

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
  const read = (name: FileName): Buffer | undefined => {
    const file = values[name];
    return file === undefined ? undefined : readSettingFile(settings[name], file, labelOf(values, name), problems);
  };
  const [ca, cert, key] = [read("databaseTlsCa"), read("databaseTlsCert"), read("databaseTlsKey")];
  if (cert !== undefined && key !== undefined && !isKeyOf(cert, key)) {
    problems.push(
      `${labelOf(values, "databaseTlsKey")}: ${values.databaseTlsKey} is not the key of the certificate ${values.databaseTlsCert}`,
    );
  }
  if (problems.length > 0) throw new SettingsError(problems);
  return {
    ...(ca !== undefined && { ca }),
    ...(cert !== undefined && { cert }),
    ...(key !== undefined && { key }),
    // As in libpq, `require` with authorities is `verify-ca`.
    ...(mode === "require" && ca === undefined && { rejectUnauthorized: false }),
    ...(mode !== "verify-full" && { checkServerIdentity: () => undefined }),
  };
}
