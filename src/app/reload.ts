// Keeps the certificate, the master key and the keys of issuers of a running service up to date with their files. They
// are read again every few seconds and compared by content: files that are replaced by renaming, and directories behind
// symbolic links that are swapped, leave watchers of inodes behind.
import { X509Certificate } from "node:crypto";
import { readFile } from "node:fs/promises";
import { type Settings, SettingsError } from "../config/config.js";
import { labelOf } from "../config/settings.js";
import { readTlsPair, SERVER_PAIR, type TlsContent } from "../config/tls.js";
import { MASTER_KEY_CHECK, type MasterKeyFile } from "../issuer/keys/master-key.js";
import type { OperatorKeys } from "../issuer/upstream/operator-keys.js";
import type { Clock } from "../kernel/time.js";
import type { Store } from "../store/store.js";
import type { Logger } from "../telemetry/logger.js";

const CHECK_MS = 2_000;
const KEPT = "the TLS certificate cannot be replaced: the one before stays in use";

/** What {@link watchFiles} needs. */
export interface FileWatchDeps {
  readonly settings: Settings;
  readonly storage: { readonly masterKey: MasterKeyFile; readonly store: Pick<Store, "read">; readonly clock: Clock };
  /** The certificate that is served now; undefined without TLS. */
  readonly tls: TlsContent | undefined;
  /** Serves new connections with another certificate. */
  readonly replaceTls: (content: TlsContent) => void;
  readonly operatorKeys: OperatorKeys;
  readonly logger: Logger;
  /** What is closed when the service stops. */
  readonly opened: { add(close: () => void): void };
}

/** Starts to watch all of these files. */
export function watchFiles({ settings, storage, tls, replaceTls, operatorKeys, logger, opened }: FileWatchDeps) {
  const { masterKey, store, clock } = storage;
  const watches = [
    watchMasterKey({ masterKey, store, logger }),
    ...(tls ? [watchCertificate({ settings, current: tls, replace: replaceTls, logger, clock })] : []),
    watchIssuerKeys({ keys: operatorKeys, logger }),
  ];
  for (const { stop } of watches) opened.add(stop);
  return {
    /** Reads all of them now, one after the other, and logs the results. Does not throw. */
    async reload(): Promise<void> {
      for (const watch of watches) await watch.reload();
    },
  };
}

/**
 * Reads the certificate and its key.
 *
 * @returns undefined without TLS
 * @throws SettingsError naming each file that cannot be used
 */
export function readCertificate(settings: Settings): TlsContent | undefined {
  const problems: string[] = [];
  const found = readTlsPair(settings, SERVER_PAIR, problems);
  if (problems.length > 0) throw new SettingsError(problems);
  return found;
}

/** What {@link watchCertificate} needs. */
interface CertificateOptions {
  readonly settings: Settings;
  /** What is served now. */
  readonly current: TlsContent;
  /** Serves new connections with another certificate. */
  readonly replace: (content: TlsContent) => void;
  readonly logger: Logger;
  readonly clock: Clock;
  /** The time between two looks at the files, in milliseconds; tests shorten it. */
  readonly checkMs?: number;
}

/** Reads the files of the certificate again. */
interface CertificateWatch {
  /** Reads them now, and says in the log what came of it. Does not throw. */
  reload(): Promise<void>;
  stop(): void;
}

/**
 * Begins to look at the files. A pair that cannot be used is logged once and the certificate before stays, as it does when
 * it is valid and the other is not. Two files are not replaced at the same moment, so a pair is looked at twice before it is
 * logged.
 */
export function watchCertificate(options: CertificateOptions): CertificateWatch {
  const { settings, replace, logger, clock, checkMs = CHECK_MS } = options;
  let served = options.current;
  /** What was found last and could not be used, with the reason. */
  let rejected = "";
  let isLogged = false;

  function warn(): void {
    const problem = describeValidity(served, clock());
    if (problem !== undefined) logger.warn(describe(served), `the TLS certificate that is served ${problem}`);
  }

  // Why a pair that can be used is worse than the one that is served.
  function compare(found: TlsContent): string[] {
    const problem = describeValidity(found, clock());
    if (problem === undefined || describeValidity(served, clock()) !== undefined) return [];
    return [`${labelOf(settings, "tlsCert")}: ${settings.tlsCert} ${problem}`];
  }

  // `isAsked`: an operator waits for the result.
  async function check(isAsked: boolean): Promise<void> {
    if (isAsked) isLogged = false;
    const content = await readContent(settings);
    if (content === textOf(served)) {
      rejected = "";
      if (isAsked) logger.info(describe(served), "the TLS certificate has not changed");
      return;
    }
    const problems: string[] = [];
    const found = readTlsPair(settings, SERVER_PAIR, problems);
    if (found !== undefined) problems.push(...compare(found));
    if (found !== undefined && problems.length === 0) {
      replace(found);
      served = found;
      rejected = "";
      logger.info(describe(found), "the TLS certificate was replaced");
      return warn();
    }
    const problem = problems.join("\n");
    const isFirst = `${problem}\n${content}` !== rejected;
    rejected = `${problem}\n${content}`;
    if (isFirst) isLogged = false;
    if (isLogged || (isFirst && !isAsked)) return;
    isLogged = true;
    logger.error({ problem }, KEPT);
  }

  warn();
  return repeatCheck(check, (err) => logger.error({ err }, KEPT), checkMs);
}

/**
 * Runs a check when it is asked for and in intervals of `checkMs`, if given. One runs at a time: two that overlap could
 * use the older files.
 */
function repeatCheck(
  check: (isAsked: boolean) => Promise<void>,
  onError: (err: unknown) => void,
  checkMs: number | undefined,
) {
  let work: Promise<void> = Promise.resolve();
  const enqueue = (isAsked: boolean) => {
    work = work.then(() => check(isAsked)).catch(onError);
    return work;
  };
  const timer = checkMs === undefined ? undefined : setInterval(() => void enqueue(false), checkMs).unref();
  return {
    reload: () => enqueue(true),
    stop: () => clearInterval(timer),
  };
}

// Without their checks, which are for what is new; a file system that does not answer stops no call.
async function readContent({ tlsCert = "", tlsKey = "" }: Settings): Promise<string> {
  const files = await Promise.all([readFile(tlsCert), readFile(tlsKey)]).catch(() => undefined);
  return files === undefined ? "" : textOf({ cert: files[0], key: files[1] });
}

function textOf({ cert, key }: TlsContent): string {
  return `${cert}\n${key}`;
}

function describe({ cert }: TlsContent) {
  const { subject, validTo, fingerprint256 } = new X509Certificate(cert);
  return { subject: subject.replaceAll("\n", ", "), validTo, fingerprint256 };
}

function describeValidity({ cert }: TlsContent, nowMs: number): string | undefined {
  const { validFrom, validTo } = new X509Certificate(cert);
  if (nowMs > Date.parse(validTo)) return `has expired: it was valid until ${validTo}`;
  return nowMs < Date.parse(validFrom) ? `is not valid before ${validFrom}` : undefined;
}

interface MasterKeyWatchDeps {
  readonly masterKey: MasterKeyFile;
  readonly store: Pick<Store, "read">;
  readonly logger: Logger;
}

/** Reads the file again. */
interface MasterKeyWatch {
  /** Reads it now and logs the result. Does not throw. */
  reload(): Promise<void>;
  stop(): void;
}

/** Starts to watch the file of the master key. A file that cannot be used is logged once, and the keys before stay in use. */
function watchMasterKey({ masterKey, store, logger }: MasterKeyWatchDeps): MasterKeyWatch {
  let rejected = "";
  let logged = masterKey.changes;

  async function check(isAsked: boolean): Promise<void> {
    let stored: string | undefined;
    try {
      stored = await store.read((tx) => tx.settings.find(MASTER_KEY_CHECK));
    } catch (err) {
      // The file may be right. The store logs what its database has.
      if (isAsked) logger.error({ err }, "the master key file was not read again: the database cannot be read");
      return;
    }
    try {
      masterKey.reload(stored);
      rejected = "";
      // A value that only a new key decrypts makes the master key read its file as well.
      const hasChanged = masterKey.changes !== logged;
      logged = masterKey.changes;
      if (hasChanged) logger.info({ keys: masterKey.size }, "the master key file was read again");
      else if (isAsked) logger.info("the master key file has not changed");
    } catch (error) {
      const problem = error instanceof Error ? error.message : String(error);
      if (problem === rejected && !isAsked) return;
      rejected = problem;
      logger.error({ problem }, "the master key file cannot be used: the keys before stay in use");
    }
  }

  const timer = setInterval(() => void check(false), CHECK_MS).unref();
  return {
    reload: () => check(true),
    stop: () => clearInterval(timer),
  };
}

interface IssuerKeyWatchDeps {
  readonly keys: OperatorKeys;
  readonly logger: Logger;
  /** The time between two looks at the files, in milliseconds; tests shorten it. */
  readonly checkMs?: number;
}

/** Reads the files again. */
interface IssuerKeyWatch {
  /** Reads them now and logs the result. Does not throw. */
  reload(): Promise<void>;
  stop(): void;
}

/** Starts to watch the files of issuers' keys. A file that cannot be used is logged once, and the keys before stay in use. */
export function watchIssuerKeys({ keys, logger, checkMs = CHECK_MS }: IssuerKeyWatchDeps): IssuerKeyWatch {
  const rejected = new Map<string, string>();

  async function check(isAsked: boolean): Promise<void> {
    for (const { issuer, source: file, hasChanged, problem } of await keys.reload()) {
      const isKnown = problem !== undefined && rejected.get(issuer) === problem;
      if (problem === undefined) rejected.delete(issuer);
      else rejected.set(issuer, problem);
      if (hasChanged) logger.info({ issuer, file }, "the keys of an issuer were read again");
      else if (problem !== undefined && (!isKnown || isAsked))
        logger.error({ issuer, file, problem }, "the keys of an issuer cannot be read: those before stay in use");
      else if (problem === undefined && isAsked)
        logger.info({ issuer, file }, "the keys of an issuer have not changed");
    }
  }

  const onError = (err: unknown) =>
    logger.error({ err }, "the keys of issuers cannot be read: those before stay in use");
  return repeatCheck(check, onError, keys.hasFiles ? checkMs : undefined);
}
