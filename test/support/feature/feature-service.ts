// The services of feature.proto on the whole of the service's own stack: one
// port for all protocols, the pipeline, a real store. Nothing of it is known to
// the stack but descriptors and handlers.

import { unauthenticated } from "../../../src/kernel/errors.js";
import { createAuthenticateCaller } from "../../../src/pipeline/auth/authenticate.js";
import type { StreamCall, UnaryCall } from "../../../src/pipeline/call.js";
import type { Handler } from "../../../src/pipeline/handlers.js";
import { createInvoke } from "../../../src/pipeline/invoke.js";
import { createInvokeStream } from "../../../src/pipeline/invoke-stream.js";
import { createMethodTable, type ServedService } from "../../../src/pipeline/method-table.js";
import { openSqlite } from "../../../src/store/sqlite/open.js";
import type { Store } from "../../../src/store/store.js";
import { createLogger } from "../../../src/telemetry/logger.js";
import { defaultLimits } from "../../../src/transport/http/limits/limits.js";
import { bindPort } from "../../../src/transport/http/listener.js";
import { Gateway } from "../../../src/transport/rest/gateway.js";
import { createServe } from "../../../src/transport/serve.js";
import { createServer } from "../../../src/transport/server.js";
import { newDataDir } from "../data-dir.js";
import { featureService } from "./feature.js";

/** The requests of streams. */
export interface WatchRequest {
  readonly uid: string;
  readonly count: number;
}

/** The running services. */
export interface FeatureStack {
  readonly url: string;
  readonly port: number;
  readonly store: Store;
  /** What `Watch` does; the test's to set. */
  watch: (request: WatchRequest, call: StreamCall) => AsyncIterable<object>;
  /** What `Echo` answers; the test's to set. */
  echo: (request: object) => object;
  stop(): Promise<void>;
}

const uidOf = ({ uid }: { uid: string }) => ({ uid });

/** Starts them on a free port, with `others` beside them. */
export async function startFeatureStack(others: readonly ServedService[] = []): Promise<FeatureStack> {
  const clock = Date.now;
  const errorDomain = "feature.test";
  const store = openSqlite({ directory: newDataDir(), clock });
  const stack: Pick<FeatureStack, "watch" | "echo"> = { watch: things, echo: (request) => request };
  const responses: Record<string, (request: never, call: UnaryCall) => object | Promise<object>> = {
    getThing: ({ uid }: { uid: string }) => ({ uid, displayName: `thing ${uid}`, labels: { a: "b" } }),
    listThings: () => ({ things: [{ uid: "a" }], totalCount: 1n }),
    listOld: () => ({ items: [] }),
    // A call that changes nothing is not recorded.
    async createThing({ parent, thing }: { parent: string; thing?: object }, { tx }) {
      await tx.settings.put("things", parent);
      return { ...thing, uid: `${parent}/new` };
    },
    updateThing: ({ thing }: { thing?: object }) => thing ?? {},
    replaceThing: ({ thing }: { thing?: object }) => thing ?? {},
    deleteThing: () => ({}),
    archiveThing: ({ uid, reason }: { uid: string; reason: string }) => ({ uid, displayName: `archived: ${reason}` }),
    purgeThing: () => ({}),
    anyThing: uidOf,
    echo: (request) => stack.echo(request),
    search: (request) => request,
    getTyped: (request) => request,
    getLabels: () => ({ labels: { a: "b" } }),
    download: ({ uid }: { uid: string }) => ({ contentType: "text/csv", data: Buffer.from(`a;${uid}\n`) }),
    upload: ({ file }: { file?: { contentType: string; data: Uint8Array } }) => ({
      contentType: file?.contentType ?? "",
      size: BigInt(file?.data.length ?? 0),
    }),
    touch: () => ({}),
    setTags: (request) => request,
    hidden: uidOf,
  };
  const watch = (request: WatchRequest, call: StreamCall) => stack.watch(request, call);
  const streams = { watch, watchLabels: watch, export: exportCsv };
  const methods = createMethodTable([
    { desc: featureService("FeatureService"), handlers: responses as Record<string, Handler> },
    { desc: featureService("StreamService"), handlers: streams as Record<string, Handler> },
    ...others,
  ]);
  const pipeline = {
    store,
    clock,
    errorDomain,
    onInternalError: () => {},
  };
  const invoke = createInvoke(pipeline);
  const invokeStream = createInvokeStream(pipeline);
  const authenticateCaller = createAuthenticateCaller(() => Promise.reject(unauthenticated()));
  const serve = createServe({
    ...{ invoke, authenticateCaller, invokeStream, clock, errorDomain, limits: defaultLimits },
    onInternalError: () => {},
  });
  const gateway = new Gateway({ methods: methods.values(), serve });
  const bound = await bindPort({ host: "127.0.0.1", port: 0 });
  const server = createServer({
    methods,
    serve,
    gateway,
    errorDomain,
    port: bound,
    limits: defaultLimits,
    logger: createLogger("silent"),
  });
  server.start();
  const { port } = bound.address;
  return Object.assign(stack, {
    url: `http://127.0.0.1:${port}`,
    port,
    store,
    async stop() {
      await server.stop(0);
      await store.close();
    },
  });
}

/** As many things as the request says. */
export async function* things({ uid, count }: WatchRequest): AsyncGenerator<object> {
  for (let n = 1; n <= count; n++) yield { uid: `${uid}${n}`, labels: { n: String(n) } };
}

async function* exportCsv({ uid, count }: WatchRequest): AsyncGenerator<object> {
  for (let n = 1; n <= count; n++) yield { contentType: "text/csv", data: Buffer.from(`${uid};${n}\n`) };
}
