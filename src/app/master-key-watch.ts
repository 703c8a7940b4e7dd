// Keeps the master key of a running service up to date with its file, as `watchCertificate` does for the certificate.
import { MASTER_KEY_CHECK, type MasterKeyFile } from "../issuer/keys/master-key.js";
import type { Store } from "../store/port.js";
import type { Logger } from "../telemetry/logger.js";

const CHECK_MS = 2_000;

export interface MasterKeyWatchDeps {
  readonly masterKey: MasterKeyFile;
  readonly store: Pick<Store, "read">;
  readonly logger: Logger;
}

/** Reads the file again. */
export interface MasterKeyWatch {
  /** Reads it now and logs the result. Does not throw. */
  reload(): Promise<void>;
  stop(): void;
}

/** Starts to watch the file. A file that cannot be used is logged once, and the keys before stay in use. */
export function watchMasterKey({ masterKey, store, logger }: MasterKeyWatchDeps): MasterKeyWatch {
  let rejected = "";
  let logged = masterKey.changes;

  async function check(isAsked: boolean): Promise<void> {
    try {
      const stored = await store.read((tx) => tx.settings.find(MASTER_KEY_CHECK));
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
