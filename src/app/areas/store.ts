// The store of the service: the installation on the host, and whether units of work end.
import { unavailable } from "../../kernel/errors.js";
import type { Clock } from "../../kernel/time.js";
import type { DatabaseFault, DatabaseFaultEvent } from "../../store/faults.js";
import type { Store } from "../../store/store.js";
import { watchUnits } from "../../store/unit-watch.js";
import type { Logger } from "../../telemetry/logger.js";
import { readValues, type Source } from "../../telemetry/metrics/samples.js";
import { openInstallation } from "../installation.js";
import type { AreaDeps } from "./area.js";

export type StoreArea = Awaited<ReturnType<typeof openStoreArea>>;

export interface StoreAreaDeps extends Pick<AreaDeps, "settings" | "logger" | "opened"> {
  readonly clock: Clock | undefined;
  /** Whether the process is a worker, whose parent has the lock of the data directory. */
  readonly isWorker: boolean;
  /** Called at each step of an expansion, which may take minutes. */
  readonly noteProgress?: (() => void) | undefined;
}

/** Opens the installation. A database of an older version is expanded first, unless the settings forbid it. */
export async function openStoreArea(deps: StoreAreaDeps) {
  const { settings, clock: givenClock, isWorker, noteProgress, logger, opened } = deps;
  const installation = await openInstallation({
    settings,
    mode: settings.create ? "create" : "update",
    exclusive: !isWorker,
    isWorker,
    onFault: logDatabaseFault(logger),
    onMigration({ name, done, total }) {
      logger.info({ migration: name, done, total }, "upgrading the database");
      noteProgress?.();
    },
    ...(givenClock && { clock: givenClock }),
  });
  opened.add(installation.close);
  const { store, keys, masterKey, clock } = installation;
  const units = watchUnits(store, {
    maxWaitMs: settings.maxWait * 1000,
    watchesReads: settings.databaseUrl !== undefined,
  });

  let wereStuck = false;
  return {
    installation,
    /** For background work. */
    store,
    /** The same for calls, whose units of work are watched and have a limited time to begin. */
    callStore: units.store,
    keys,
    masterKey,
    clock,
    /** Rejects while calls wait for the database in vain or it cannot be used, and logs when that begins and ends. */
    async ready() {
      const areStuck = units.areStuck();
      if (areStuck && !wereStuck) logger.error("not ready: calls wait for the database, and none has ended for 5 s");
      if (!areStuck && wereStuck) logger.info("calls that wait for the database end again");
      wereStuck = areStuck;
      if (areStuck) throw unavailable("no unit of work ends");
      return store.check();
    },
    sources: createDatabaseFaultSources(store),
  };
}

// Of the faults that this database can have.
function createDatabaseFaultSources(store: Pick<Store, "stats">): Source[] {
  return [
    readValues("arbor_database_fault", "fault", () => {
      const { current, errors } = store.stats().faults ?? {};
      if (current === undefined) return undefined;
      const faults = Object.keys(errors ?? {}) as DatabaseFault[];
      return Object.fromEntries(faults.map((fault) => [fault, Number(current.has(fault))]));
    }),
    readValues("arbor_database_fault_errors_total", "fault", () => store.stats().faults?.errors),
  ];
}

// One line at the begin and one at the end of each fault, and one each minute between, however many calls fail.
function logDatabaseFault(logger: Pick<Logger, "error" | "info">) {
  return ({ state, message, ...fields }: DatabaseFaultEvent): void => {
    if (state === "began" || state === "lasts") logger.error(fields, message);
    else logger.info(fields, message);
  };
}
