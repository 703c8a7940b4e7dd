// Where a registry tells of pushes and deletions as they happen. It repeats what
// was not answered with 200, so that is said only of what is on disk.
import type { Clock } from "../../kernel/clock.js";
import { unauthenticated } from "../../kernel/errors.js";
import type { Ids } from "../../kernel/ids.js";
import type { WebRoutes } from "../../kernel/web.js";
import type { Store } from "../../store/port.js";
import { applyEvents } from "./apply-event.js";
import { eventsIn } from "./notification.js";
import { readSecret } from "./notification-secret.js";

/** The path, as the configuration of the registry names it. */
export const NOTIFICATIONS_PATH = "/registry/notifications";

const MAX_BYTES = 1024 * 1024;

/** How long news may be late and still be told from older ones, in milliseconds. */
const MEMORY_MS = 30 * 24 * 3_600_000;
const SWEEP_MS = 24 * 3_600_000;

/** What {@link notificationRoutes} needs. */
export interface NotificationDeps {
  /** The file of the secret; without one there is no such path. */
  readonly secretFile: string | undefined;
  readonly store: Store;
  readonly clock: Clock;
  readonly ids: Ids;
  /** For the operator's log: how many events came, changed something, or were dropped. */
  readonly onNews: (news: { readonly events: number; readonly changed: number; readonly dropped: number }) => void;
}

/**
 * Makes the routes.
 *
 * @throws Error when the file of the secret cannot be used.
 */
export function notificationRoutes({ secretFile, store, clock, ids, onNews }: NotificationDeps): WebRoutes {
  if (secretFile === undefined) return [];
  const isRegistry = readSecret(secretFile);
  let nextSweepMs = clock() + SWEEP_MS;
  return [
    {
      path: NOTIFICATIONS_PATH,
      method: "POST",
      access({ header }) {
        if (!isRegistry(header("authorization"))) throw unauthenticated();
      },
      maxBytes: MAX_BYTES,
      async handle(request) {
        const events = eventsIn(await request.bytes());
        if (events.length === 0) return { status: 200 };
        const source = { method: NOTIFICATIONS_PATH, remoteAddress: request.remoteAddress ?? "" };
        const nowMs = clock();
        const applied = await store.write((tx) => applyEvents(tx, events, { ids, nowMs, source }));
        if (nowMs >= nextSweepMs) {
          nextSweepMs = nowMs + SWEEP_MS;
          await store.write(async (tx) => {
            await tx.registry.sweep(nowMs - MEMORY_MS);
            await tx.tags.sweepMarks(nowMs - MEMORY_MS);
          });
        }
        onNews({ events: events.length, ...applied });
        return { status: 200 };
      },
    },
  ];
}
