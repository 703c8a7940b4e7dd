// `arbor copy`: copies an installation from SQLite to PostgreSQL or back (docs/copy.md).

import { existsSync } from "node:fs";
import { join } from "node:path";
import { findMasterKeyFile } from "../../app/installation.js";
import { COPY_TARGET_VARIABLE } from "../../config/command-variables.js";
import { type Settings, SettingsError, settings as settingTable } from "../../config/config.js";
import { findSessionUrl } from "../../config/database.js";
import { readSettingFile } from "../../config/setting-files.js";
import { readDatabaseTls } from "../../config/tls.js";
import { createMissingKeyError, MASTER_KEY_CHECK } from "../../issuer/keys/master-key.js";
import { failedPrecondition } from "../../kernel/errors.js";
import { type ComparedTable, CopyMismatch, compareDatabases, copyDatabase } from "../../store/copy/copy.js";
import type { CopySource, CopyTarget } from "../../store/copy/databases.js";
import { openPgSource, openPgTarget } from "../../store/copy/pg.js";
import { assertCopyable, identifySource, prepareTarget } from "../../store/copy/prepare.js";
import { openSqliteSource, openSqliteTarget } from "../../store/copy/sqlite.js";
import { type CopyMark, createMark } from "../../store/copy-mark.js";
import type { MigrationProgress } from "../../store/migrate/phases.js";
import type { PgTls } from "../../store/pg/connection.js";
import { invalidFlag } from "../errors.js";
import { print } from "./host.js";
import { createThrottledProgress } from "./progress.js";

export interface CopyFlags {
  readonly verify?: boolean;
  readonly json?: boolean;
  readonly progress?: boolean;
}

/** The target: a data directory or a database. */
export type CopyLocation =
  | { readonly directory: string; readonly url?: undefined }
  | { readonly url: string; readonly directory?: undefined };

/**
 * Reads the target from the flags or the environment.
 *
 * @throws CommandError without a target; SettingsError for a file that cannot be used
 */
export function readTarget(
  { to: flag, toUrlFile }: { readonly to?: string; readonly toUrlFile?: string },
  env: Readonly<Record<string, string | undefined>>,
): CopyLocation {
  if (flag !== undefined && toUrlFile !== undefined) {
    throw invalidFlag("--to-url-file", "cannot be combined with --to");
  }
  if (toUrlFile !== undefined) return { url: readUrlFile(toUrlFile) };
  const to = flag ?? env[COPY_TARGET_VARIABLE];
  if (to === undefined || to === "") {
    throw invalidFlag("--to", "is required: an empty data directory, or the postgres:// URL of an empty database");
  }
  const label = flag === undefined ? COPY_TARGET_VARIABLE : "--to";
  return /^postgres(ql)?:/.test(to) ? { url: parseUrl(to, label) } : { directory: to };
}

function readUrlFile(file: string): string {
  const problems: string[] = [];
  const content = readSettingFile(settingTable.databaseUrlFile, file, "--to-url-file", problems);
  if (content === undefined) throw new SettingsError(problems);
  return parseUrl(content.toString().replace(/\r?\n$/, ""), `--to-url-file: ${file}`);
}

function parseUrl(text: string, label: string): string {
  try {
    return settingTable.databaseUrl.parse(text) as string;
  } catch (error) {
    throw new SettingsError([`${label} ${(error as Error).message}`]);
  }
}

/**
 * `arbor copy`: prints the digest of each table, which is the same in both databases.
 *
 * @throws ApiError FAILED_PRECONDITION when the source is not ready or in use, its master key is missing, or the target is
 * not empty; Error when a table differs; CommandError for databases of the same kind
 */
export async function copyCommand(
  settings: Settings,
  location: CopyLocation,
  { verify = false, json = false, progress: always = false }: CopyFlags,
): Promise<void> {
  assertOtherKind(settings, location);
  const tls = readDatabaseTls(settings);
  const source = await openSource(settings, tls, !verify);
  const progress = createThrottledProgress(always || process.stderr.isTTY === true);
  try {
    if (verify) {
      const tables = await compareWith(source, location, tls, progress.onProgress).finally(progress.clear);
      return printTables(tables, json, "the tables of both databases are equal");
    }
    await source.assertNotServed();
    await assertCopyable(source);
    const installation = await identifySource(source, MASTER_KEY_CHECK);
    const keyFile = findMasterKeyFile(settings);
    // Without the key the copy could not be used.
    if (!existsSync(keyFile)) throw createMissingKeyError(keyFile);
    const mark = createMark(installation, source.name);
    const tables = await copyTo(source, { location, tls, mark }, progress.onProgress).finally(progress.clear);
    printTables(tables, json, "copied: the tables of both databases are equal");
    process.stderr.write(`arbor: ${describeKey(keyFile, location)}\n`);
  } finally {
    await source.close();
  }
}

function assertOtherKind({ databaseUrl }: Settings, { url }: CopyLocation): void {
  if (databaseUrl === undefined && url === undefined) {
    throw invalidFlag("--to", "both databases are SQLite: `arbor backup` and `arbor restore` copy a data directory");
  }
  if (databaseUrl !== undefined && url !== undefined) {
    throw invalidFlag("--to", "both databases are PostgreSQL: pg_dump and pg_restore copy one");
  }
}

async function openSource(settings: Settings, tls: PgTls, exclusive: boolean): Promise<CopySource> {
  const url = findSessionUrl(settings);
  return url === undefined ? openSqliteSource({ directory: settings.data, exclusive }) : openPgSource({ url, tls });
}

async function openTarget({ directory, url }: CopyLocation, tls: PgTls): Promise<CopyTarget> {
  return directory === undefined ? openPgTarget({ url, tls }) : openSqliteTarget(directory);
}

async function compareWith(
  source: CopySource,
  { directory, url }: CopyLocation,
  tls: PgTls,
  onProgress: (progress: MigrationProgress) => void,
): Promise<readonly ComparedTable[]> {
  const target =
    directory === undefined ? await openPgSource({ url, tls }) : openSqliteSource({ directory, exclusive: false });
  try {
    for (const one of [source, target]) await assertCopyable(one);
    return await compareDatabases(source, target, onProgress);
  } catch (error) {
    if (error instanceof CopyMismatch) throw new Error(`the databases differ:\n${error.message}`);
    throw error;
  } finally {
    await target.close();
  }
}

interface TargetOptions {
  readonly location: CopyLocation;
  readonly tls: PgTls;
  readonly mark: CopyMark;
}

async function copyTo(
  source: CopySource,
  { location, tls, mark }: TargetOptions,
  onProgress: (progress: MigrationProgress) => void,
): Promise<readonly ComparedTable[]> {
  const target = await openTarget(location, tls);
  try {
    const isResumed = await prepareTarget(target, mark);
    if (isResumed) process.stderr.write("arbor: continuing an unfinished copy\n");
    const onRestart = () =>
      void process.stderr.write("arbor: the source has changed since, so the copy begins again\n");
    return await copyDatabase(source, target, { isResumed, onProgress, onRestart }, () => assertUnchanged(source));
  } catch (error) {
    if (!(error instanceof CopyMismatch)) throw error;
    throw new Error(
      `the copy differs from its source and stays unusable:\n${error.message}\nrun the command again to copy anew`,
    );
  } finally {
    await target.close();
  }
}

async function assertUnchanged(source: CopySource): Promise<void> {
  await source.assertNotServed();
  if (!(await source.hasChanged())) return;
  throw failedPrecondition("SOURCE_CHANGED", `${source.name} was changed while it was copied: run the command again`);
}

function printTables(tables: readonly ComparedTable[], json: boolean, summary: string): void {
  const rows = tables.reduce((sum, { source }) => sum + source.rows, 0);
  for (const { table, source } of [...tables].sort((a, b) => (a.table < b.table ? -1 : 1))) {
    print(json ? JSON.stringify({ table, ...source }) : `${source.sha256} ${String(source.rows).padStart(9)} ${table}`);
  }
  process.stderr.write(`arbor: ${summary}, ${rows} rows in ${tables.length} tables\n`);
}

// The database does not contain the master key.
function describeKey(file: string, { directory }: CopyLocation): string {
  return directory === undefined
    ? `start it with the same master key: --master-key-file ${file}`
    : `start it with the same master key: copy ${file} to ${join(directory, "master.key")}, or name it with --master-key-file`;
}
