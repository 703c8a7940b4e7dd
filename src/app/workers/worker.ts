// A worker: serves the connections that its parent hands over. Signals are for the parent, which tells its workers; a
// worker whose parent has ended stops at once.
import { Socket } from "node:net";
import { readSettings } from "../../config/config.js";
import type { ListenAddress } from "../../kernel/ip-address.js";
import { createLogger, flushLog } from "../../telemetry/logger.js";
import type { BoundPort, OnConnection } from "../../transport/http/listener.js";
import { type App, startApp } from "../app.js";
import { exitOnUncaughtError } from "../process.js";
import type { Failures, FromWorker, ToWorker } from "./messages.js";

/** How long calls in flight may take to end after the parent has, in milliseconds. */
const ORPHAN_MS = 1_000;
/** When the process ends then in any case, in milliseconds. */
const ORPHAN_END_MS = 2_000;

/**
 * Runs until the parent says so, or ends.
 *
 * @throws as {@link startApp}
 */
export async function runWorker(): Promise<void> {
  const port = createPassedPort();
  const failures = createFailureNews();
  let app: App | undefined;
  process.once("disconnect", () => {
    setTimeout(() => process.exit(1), ORPHAN_END_MS);
    void Promise.resolve(app?.abandon(ORPHAN_MS)).finally(() => process.exit(1));
  });
  const start = await new Promise<Extract<ToWorker, { kind: "start" }>>((resolve) => {
    process.on("message", (message: ToWorker, handle) => {
      const socket = handle instanceof Socket ? handle : undefined;
      if (message.kind === "start") resolve(message);
      else if (message.kind === "connection") port.pass(message, socket);
      else if (message.kind === "failures") failures.hear(message);
      else if (message.kind === "ping") tell({ kind: "alive" });
      else if (message.kind === "ask-taken") tell({ kind: "taken", id: message.id, hasIt: port.has(message.id) });
      else if (app !== undefined) void obey(app, message).catch(exitWithError);
    });
  });
  const settings = readSettings(start.settings);
  const logger = createLogger(settings.logLevel, undefined, { worker: start.worker });
  const flush = () => flushLog(logger);
  exitOnUncaughtError({ logger, abandon: (drainMs) => app?.abandon(drainMs), flushLog: flush });
  const noteProgress = () => tell({ kind: "progress" });
  const parts = { port: port.listenAt(start.address), failureNews: failures, noteProgress };
  try {
    app = await startApp({ settings, logger, worker: parts });
  } catch (error) {
    tell({ kind: "failed", reason: error instanceof Error ? error.message : String(error) });
    throw error;
  }
  tell({ kind: "ready" });

  async function obey(running: App, message: ToWorker): Promise<void> {
    if (message.kind === "reload") await running.reload();
    else if (message.kind === "collect") {
      tell({ kind: "collected", id: message.id, families: await running.collectMetrics() });
    } else if (message.kind === "leave") running.leave();
    else if (message.kind === "stop") {
      await running.stop(message.reason);
      await flush();
      process.exit();
    } else if (message.kind === "abandon") {
      await running.abandon(message.drainMs);
      await flush();
      process.exit();
    }
  }
}

// The handler of uncaught errors has logged it.
function exitWithError(error: unknown): void {
  setImmediate(() => {
    throw error;
  });
}

function tell(message: FromWorker): void {
  // A parent that has ended is noticed by the end of the channel.
  if (process.connected) process.send?.(message, undefined, undefined, () => {});
}

/** Returns a function that collects items, and passes on those of one turn of the event loop together. */
function collectOneTurn<T>(pass: (items: readonly T[]) => void): (item: T) => void {
  let items: T[] = [];
  return (item) => {
    if (items.push(item) > 1) return;
    setImmediate(() => {
      pass(items);
      items = [];
    });
  };
}

function createFailureNews() {
  const counters = new Map<string, (name: string) => void>();
  const add = collectOneTurn<Failures["failures"][number]>((failures) => tell({ kind: "failures", failures }));
  return {
    tell: (kind: string, name: string) => add([kind, name]),
    listen: (kind: string, onFailure: (name: string) => void) => void counters.set(kind, onFailure),
    hear({ failures }: Failures): void {
      for (const [kind, name] of failures) counters.get(kind)?.(name);
    },
  };
}

// The port of the parent, as the server of this process sees it.
function createPassedPort() {
  const open = new Set<number>();
  const addClosed = collectOneTurn<number>((ids) => tell({ kind: "closed", ids }));
  let onConnection: OnConnection | undefined;

  function noteClosed(id: number): void {
    open.delete(id);
    addClosed(id);
  }

  return {
    has: (id: number) => open.has(id),
    /** Serves a connection; `socket` is undefined if it was closed on its way. */
    pass({ id, isOverLimit }: Extract<ToWorker, { kind: "connection" }>, socket: Socket | undefined): void {
      if (socket === undefined) {
        tell({ kind: "taken", id, hasIt: false });
        return;
      }
      open.add(id);
      socket.once("close", () => noteClosed(id));
      tell({ kind: "taken", id, hasIt: true });
      if (onConnection === undefined) socket.destroy();
      else onConnection(socket, isOverLimit);
    },
    listenAt: (address: ListenAddress): BoundPort => ({
      address,
      accept(serve) {
        onConnection = serve;
      },
      // The parent sends those first.
      async acceptWaiting() {},
      close() {
        onConnection = undefined;
      },
    }),
  };
}
