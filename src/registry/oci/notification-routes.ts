// The webhook for the events of a registry. The registry repeats events until it gets 200, so the handler responds
// with it only after the commit.
import { timingSafeEqual } from "node:crypto";
import type { Job } from "../../jobs/jobs.js";
import { parseBearer } from "../../kernel/bearer.js";
import { sha256 } from "../../kernel/digest.js";
import { unauthenticated } from "../../kernel/errors.js";
import { parseRegistrySecret, readSecretFile } from "../../kernel/files.js";
import type { Ids } from "../../kernel/ids.js";
import type { Clock } from "../../kernel/time.js";
import type { WebRoutes } from "../../kernel/web.js";
import { type MarkPlace, tagKind } from "../../store/registry/tags.js";
import type { Store } from "../../store/store.js";
import { applyEvents } from "./apply-event.js";
import { parseEvents } from "./notification.js";

/** The path, as the configuration of the registry names it. */
export const NOTIFICATIONS_PATH = "/registry/notifications";

const MAX_BYTES = 1024 * 1024;

/** How long event ids and marks of deleted tags are kept, in milliseconds. Later events may be applied twice. */
const RETENTION_MS = 30 * 24 * 3_600_000;
const SWEEP_INTERVAL_MS = 24 * 3_600_000;
/** How many event ids one transaction deletes; other calls run between transactions. */
const SWEEP_ROWS = 500;

export interface NotificationDeps {
  /** The file of the secret; without one there are no routes. */
  readonly secretFile: string | undefined;
  readonly store: Store;
  readonly clock: Clock;
  readonly ids: Ids;
  /** Receives, for the log of the operator, the number of events received, applied and dropped. */
  readonly onEvents: (counts: { readonly events: number; readonly changed: number; readonly dropped: number }) => void;
}

/**
 * Creates the routes.
 *
 * @throws Error when the file of the secret cannot be used.
 */
export function notificationRoutes({ secretFile, store, clock, ids, onEvents }: NotificationDeps): WebRoutes {
  if (secretFile === undefined) return [];
  const isRegistry = readSecret(secretFile);
  return [
    {
      path: NOTIFICATIONS_PATH,
      method: "POST",
      access({ header }) {
        if (!isRegistry(header("authorization"))) throw unauthenticated();
      },
      maxBytes: MAX_BYTES,
      async handle(request) {
        const events = parseEvents(await request.bytes());
        if (events.length === 0) return { status: 200 };
        const source = { method: NOTIFICATIONS_PATH, remoteAddress: request.remoteAddress ?? "" };
        const nowMs = clock();
        const applied = await store.write((tx) => applyEvents(tx, events, { ids, nowMs, source }));
        onEvents({ events: events.length, ...applied });
        return { status: 200 };
      },
    },
  ];
}

/** Creates the job that deletes old event ids and marks of deleted tags. */
export function createEventSweep(clock: Clock): Job {
  return {
    name: "registry-events",
    problem: "old events of the registry could not be deleted",
    intervalMs: SWEEP_INTERVAL_MS,
    waitsAfterClockJump: true,
    async run({ write, signal }) {
      const beforeMs = clock() - RETENTION_MS;
      let place: MarkPlace | undefined;
      do place = await write((tx) => tx.table(tagKind).sweepMarks(beforeMs, place));
      while (place !== undefined && !signal.aborted);
      let deleted = 0;
      for (let count = SWEEP_ROWS; count === SWEEP_ROWS && !signal.aborted; deleted += count) {
        count = await write(async (tx) => tx.registry.sweep(beforeMs, SWEEP_ROWS));
      }
      return deleted;
    },
  };
}

/** Whether an Authorization header carries the secret; the time depends on the length of the header alone. */
export type SecretCheck = (authorization: string | undefined) => boolean;

/**
 * Reads the secret from a file, which may end in a line break.
 *
 * @throws Error when the file cannot be read, other users can read it, or it holds anything but one word of at least
 * 32 printable ASCII characters.
 */
function readSecret(file: string): SecretCheck {
  const secret = parseFile(file);
  const expected = sha256(secret);
  return (authorization) => timingSafeEqual(sha256(parseBearer(authorization) ?? ""), expected);
}

function parseFile(file: string): string {
  let text: string;
  try {
    text = readSecretFile(file);
  } catch (cause) {
    throw new Error(`--registry-secret-file: ${(cause as Error).message}`, { cause });
  }
  try {
    return parseRegistrySecret(text);
  } catch (error) {
    throw new Error(`--registry-secret-file: ${file} ${(error as Error).message}`);
  }
}
