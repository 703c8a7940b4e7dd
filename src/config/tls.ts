// TLS of the service and to PostgreSQL: the pairs of files that it needs, a certificate and its private key.
import type { ConnectionOptions } from "node:tls";
import { isKeyOf } from "./pem.js";
import { readSettingFile } from "./setting-files.js";
import { labelOf, type Settings, SettingsError, settings } from "./settings.js";

/** The settings that name a certificate and its key. */
export interface TlsPair {
  readonly cert: "tlsCert" | "databaseTlsCert";
  readonly key: "tlsKey" | "databaseTlsKey";
}

/** What the service serves TLS with. */
export const SERVER_PAIR: TlsPair = { cert: "tlsCert", key: "tlsKey" };

/** What the service signs in at PostgreSQL with. */
export const DATABASE_PAIR: TlsPair = { cert: "databaseTlsCert", key: "databaseTlsKey" };

/** A certificate with the chain that may follow it, and its private key, both in PEM. */
export interface TlsContent {
  readonly cert: Buffer;
  readonly key: Buffer;
}

/**
 * Reads both files of a pair.
 *
 * @param problems gets a line for everything that is wrong with them
 * @returns undefined where anything is, and where the settings name no pair
 */
export function readTlsPair(values: Settings, pair: TlsPair, problems: string[]): TlsContent | undefined {
  const read = (name: TlsPair["cert"] | TlsPair["key"]) => {
    const file = values[name];
    return file === undefined ? undefined : readSettingFile(settings[name], file, labelOf(values, name), problems);
  };
  const [cert, key] = [read(pair.cert), read(pair.key)];
  if (cert === undefined || key === undefined) return undefined;
  if (isKeyOf(cert, key)) return { cert, key };
  problems.push(describeMismatch(values, pair));
  return undefined;
}

/** Describes that the key of a pair is not that of its certificate. */
export function describeMismatch(values: Settings, { cert, key }: TlsPair): string {
  const label = labelOf(values, cert);
  return `${labelOf(values, key)}: ${values[key]} is not the key of the certificate ${values[cert]}, which ${label} names`;
}

/** TLS to PostgreSQL: options of `tls.connect`, or false for none. */
type DatabaseTls = ConnectionOptions | false;

/**
 * Reads how connections to PostgreSQL are encrypted: as libpq has it, under settings of its own.
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
