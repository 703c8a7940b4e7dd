// What all areas of the service are composed with. `app/app.ts` opens them one after the other, and each returns a value
// with what later ones need:
//
//   store       the database, the keys, and whether units of work end
//   background  jobs, and the work that follows calls
//   issuer      token exchange, login, and who calls
//   platform    the services of the API, and the routes of the container registry
//   transport   the pipeline, and the server of all protocols
import type { Settings } from "../../config/config.js";
import type { FailureNews } from "../../issuer/sts/failure-limiter.js";
import type { Ids } from "../../kernel/ids.js";
import type { Logger } from "../../telemetry/logger.js";
import type { ServiceCounts } from "../metrics.js";

export interface AreaDeps {
  readonly settings: Settings;
  readonly ids: Ids;
  readonly logger: Logger;
  readonly counts: ServiceCounts;
  /** Shares failed attempts with other workers. */
  readonly failureNews: FailureNews;
  /** Logs a problem that fails no call. */
  readonly onProblem: (problem: string, error?: unknown) => void;
  /** An area adds what it opens, so that a start that fails closes it as well. */
  readonly opened: Opened;
}

/** Closes one thing. `drainMs` is how long calls in flight may take after an uncaught error, in milliseconds. */
type Close = (drainMs?: number) => Promise<void> | void;

/** Everything that is open. */
export interface Opened {
  add(close: Close): void;
  /** Closes everything in the reverse order of opening, also after an error; then throws the first error. */
  close(drainMs?: number): Promise<void>;
}

/** Creates the list, which is empty. */
export function createOpened(): Opened {
  const opened: Close[] = [];
  return {
    add: (close) => void opened.push(close),
    async close(drainMs) {
      const errors: unknown[] = [];
      for (const close of [...opened].reverse()) {
        try {
          await close(drainMs);
        } catch (error) {
          errors.push(error);
        }
      }
      if (errors.length > 0) throw errors[0];
    },
  };
}
