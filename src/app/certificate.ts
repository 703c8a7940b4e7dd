// Keeps the certificate of a running service up to date with its files. They are read again
// every few seconds and compared by content: files that are replaced by renaming, and
// directories behind symbolic links that are swapped, leave watchers of inodes behind.
import { X509Certificate } from "node:crypto";
import { readFile } from "node:fs/promises";
import { createSecureContext } from "node:tls";
import type { Logger } from "../telemetry/logger.js";
import type { TlsIdentity } from "../transport/http/protocols.js";

const CHECK_MS = 2_000;

/** What {@link watchCertificate} needs. */
export interface CertificateOptions {
  /** The paths of the files. */
  readonly certFile: string;
  readonly keyFile: string;
  /** What is served now. */
  readonly current: TlsIdentity;
  /** Serves new connections with another certificate. */
  readonly replace: (identity: TlsIdentity) => void;
  readonly logger: Logger;
}

/** Reads the files of the certificate again. */
export interface CertificateWatch {
  /** Reads them now, and says in the log what came of it. Does not throw. */
  reload(): Promise<void>;
  stop(): void;
}

/**
 * Begins to look at the files. A pair that cannot be used is logged once and the certificate before stays. Two files are
 * not replaced at the same moment, so a pair that does not match is looked at twice before it is logged.
 */
export function watchCertificate(options: CertificateOptions): CertificateWatch {
  const { certFile, keyFile, replace, logger } = options;
  let served = textOf(options.current);
  /** What was found last and could not be used: a pair of files, or why there is none. */
  let rejected = "";
  let isLogged = false;
  let work: Promise<void> = Promise.resolve();

  // `isAsked`: an operator waits for the result.
  async function check(isAsked: boolean): Promise<void> {
    let found = "";
    try {
      const identity = { cert: await readFile(certFile), key: await readFile(keyFile) };
      found = textOf(identity);
      if (found === served) {
        rejected = "";
        if (isAsked) logger.info(describe(identity), "the TLS certificate has not changed");
        return;
      }
      // Throws unless both are in PEM and belong together.
      createSecureContext(identity);
      replace(identity);
      served = found;
      rejected = "";
      logger.info(describe(identity), "the TLS certificate was replaced");
    } catch (error) {
      const problem = found || String(error);
      if (problem !== rejected) isLogged = false;
      const isFirst = problem !== rejected;
      rejected = problem;
      if (isLogged || (isFirst && !isAsked)) return;
      isLogged = true;
      const fields = { certFile, keyFile, problem: reasonOf(error) };
      logger.error(fields, "the TLS certificate cannot be replaced: the one before stays in use");
    }
  }

  // One at a time: two that overlap could serve the older files.
  const enqueue = (isAsked: boolean) => {
    if (isAsked) isLogged = false;
    work = work.then(() => check(isAsked));
    return work;
  };
  const timer = setInterval(() => void enqueue(false), CHECK_MS).unref();
  return {
    reload: () => enqueue(true),
    stop: () => clearInterval(timer),
  };
}

function textOf({ cert, key }: TlsIdentity): string {
  return `${cert}\n${key}`;
}

function describe({ cert }: TlsIdentity) {
  const { subject, validTo, fingerprint256 } = new X509Certificate(cert);
  return { subject: subject.replaceAll("\n", ", "), validTo, fingerprint256 };
}

// OpenSSL's errors have a reason; those of the file system have a code. Neither has the content of a file.
function reasonOf(error: unknown): string {
  const { reason, code, message } = error as { reason?: string; code?: string; message?: string };
  return reason ?? code ?? String(message);
}
