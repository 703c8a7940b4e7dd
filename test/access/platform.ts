// The services of the whole application on a store, without sockets: the areas as `app/app.ts` opens them, but for
// transport and background. Calls run through the real pipeline, with any principal.
import { join } from "node:path";
import { create, type DescMethod, type Message } from "@bufbuild/protobuf";
import { pino } from "pino";
import { createOpened } from "../../src/app/areas/area.js";
import { createEventSender } from "../../src/app/areas/events.js";
import { createIssuerArea } from "../../src/app/areas/issuer.js";
import { createPlatform } from "../../src/app/areas/platform.js";
import { openStoreArea } from "../../src/app/areas/store.js";
import { createServiceCounts } from "../../src/app/metrics.js";
import { resolveSettings } from "../../src/config/config.js";
import { resolveOrigin } from "../../src/config/origin.js";
import { readMasterKey } from "../../src/issuer/keys/master-key.js";
import { noFailureNews } from "../../src/issuer/sts/failure-limiter.js";
import { randomIds } from "../../src/kernel/ids.js";
import type { Principal } from "../../src/kernel/principal.js";
import { UnaryCall } from "../../src/pipeline/call.js";
import { createInvoke } from "../../src/pipeline/invoke.js";
import type { MethodTable } from "../../src/pipeline/method-table.js";
import { createQuotas } from "../../src/pipeline/resource/quota.js";
import type { Store } from "../../src/store/store.js";
import { newDataDir } from "../support/data-dir.js";
import { inboundOf } from "../support/in-process.js";
import { memoryDir, tempDir } from "../support/temp-dir.js";

/** The application without its network side. */
export interface OpenedPlatform {
  readonly store: Store;
  /** Every method that the application serves. */
  readonly methods: MethodTable;
  /** Calls a unary method by its RPC path; rejects with a ConnectError. */
  call(path: string, principal: Principal, request: object): Promise<Message>;
  close(): Promise<void>;
}

/**
 * Opens the services.
 *
 * @param databaseUrl a PostgreSQL database with the tables of a new installation; a new SQLite database unless given
 * @param directory the data directory of a SQLite database that exists
 */
export async function openPlatform(databaseUrl?: string, directory?: string): Promise<OpenedPlatform> {
  const opened = createOpened();
  const logger = pino({ level: "silent" });
  const flags = { listen: "127.0.0.1:0", tokenAlgorithm: "ES256", accessLog: false, metricsListen: "off" };
  const settings = resolveSettings({ flags: { ...flags, ...locateData(databaseUrl, directory) }, env: {} });
  const storage = await openStoreArea({ settings, clock: undefined, isWorker: false, logger, opened });
  const origin = resolveOrigin(settings, { ...settings.listen, port: 8080 });
  const quotas = createQuotas(settings.quotas);
  const onProblem = (problem: string, error?: unknown) => {
    throw new Error(problem, { cause: error });
  };
  const shared = {
    ...{ settings, ids: randomIds, logger, counts: createServiceCounts(), failureNews: noFailureNews },
    ...{ onProblem, opened, origin, storage, tracing: undefined },
  };
  const stopping = new AbortController();
  const { methods } = await createPlatform({
    ...shared,
    issuer: createIssuerArea({ ...shared, quotas }),
    eventSender: createEventSender(shared),
    ...{ quotas, mounts: [], stopping: stopping.signal },
  });
  const { callStore, clock } = storage;
  const invoke = createInvoke({
    store: callStore,
    clock,
    errorDomain: origin.errorDomain,
    onInternalError: (error) => {
      throw error.cause ?? error;
    },
  });
  return {
    store: storage.store,
    methods,
    async call(path, principal, request) {
      const entry = methods.get(path);
      if (entry === undefined) throw new TypeError(`there is no method ${path}`);
      if (entry.kind !== "unary") throw new TypeError(`${path} has more than one response`);
      const call = new UnaryCall(inboundOf(principal.identityUid), entry.desc as DescMethod, clock());
      const { input, output } = entry.desc;
      return create(
        output,
        (await invoke(entry, call, principal, create(input, request as never) as Message)) as never,
      );
    },
    async close() {
      stopping.abort();
      await opened.close();
    },
  };
}

function locateData(databaseUrl?: string, directory?: string): Record<string, string> {
  if (databaseUrl === undefined) return { data: directory ?? newDataDir() };
  const masterKeyFile = join(tempDir(), "master.key");
  readMasterKey(masterKeyFile, true);
  return { data: memoryDir(), databaseUrl, masterKeyFile };
}
