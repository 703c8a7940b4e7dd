// The gateway with all methods of FeatureService, on real sockets: HTTP/1.1 and cleartext HTTP/2.
import { once } from "node:events";
import { createServer } from "node:http";
import http2 from "node:http2";
import type { AddressInfo } from "node:net";
import type { UnaryCall } from "../../../src/pipeline/call.js";
import { createInvokeStream } from "../../../src/pipeline/invoke-stream.js";
import type { Store } from "../../../src/store/store.js";
import type { Tx } from "../../../src/store/transaction.js";
import { defaultLimits } from "../../../src/transport/http/limits/limits.js";
import type { TrustedProxies } from "../../../src/transport/http/peer-address.js";
import { Gateway, type GatewayOptions } from "../../../src/transport/rest/gateway.js";
import { createServe, type ServeOptions } from "../../../src/transport/serve.js";
import { beginHttp1, beginHttp2 } from "../../transport/requests.js";
import { type Received, requestH1, requestOn, type Sent } from "../requests.js";
import { entryOf, type FeatureHandler, type FeatureStreamHandler, featureService, streamEntryOf } from "./feature.js";

export type { Received, Sent } from "../requests.js";

/** A running server. */
export interface FeatureServer {
  readonly gateway: Gateway;
  /** The port of the HTTP/1.1 server. */
  readonly port: number;
  /** The port of the HTTP/2 server. */
  readonly h2Port: number;
  /** The calls that reached a handler, in order. */
  readonly calls: { readonly method: string; readonly request: object; readonly call: UnaryCall }[];
  /** What `onInternalError` was told. */
  readonly internal: unknown[];
  send(protocol: "h1" | "h2", sent: Sent): Promise<Received>;
  stop(): Promise<void>;
}

// Methods that are open to everybody ask nothing of the database.
const store = { read: (unit: (tx: Tx) => unknown) => unit({} as Tx) } as Store;

/**
 * Starts it. `handlers` and `streams` response by method name; without one a method answers with its
 * request, or with an empty stream.
 */
export async function startFeatureServer(
  handlers: Readonly<Record<string, FeatureHandler>> = {},
  options: Partial<Omit<GatewayOptions, "serve"> & ServeOptions> & { readonly proxies?: TrustedProxies } = {},
  streams: Readonly<Record<string, FeatureStreamHandler>> = {},
): Promise<FeatureServer> {
  const calls: FeatureServer["calls"] = [];
  const internal: unknown[] = [];
  const errorDomain = "iam.test";
  const clock = options.clock ?? (() => 1_000_000);
  const onInternalError = (error: unknown) => void internal.push(error);
  const serve = createServe({
    limits: defaultLimits,
    authenticateCaller: () => undefined,
    invokeStream: createInvokeStream({
      store,
      clock,
      errorDomain,
      onInternalError,
    }),
    invoke: async (method, call, _principal, given) => {
      const message = typeof given === "function" ? given() : given;
      calls.push({ method: method.desc.name, request: message, call });
      return method.handler(message, call);
    },
    clock,
    errorDomain,
    onInternalError,
    ...options,
  });
  const gateway = new Gateway({
    methods: [
      ...featureService("FeatureService").methods.map((desc) => entryOf(desc, handlers[desc.name])),
      ...featureService("StreamService").methods.map((desc) => streamEntryOf(desc, streams[desc.name])),
    ],
    ...options,
    serve,
  });
  const h1 = createServer((req, res) => gateway.handle(beginHttp1(req, res, [], options.proxies)));
  const h2 = http2.createServer();
  h2.on("stream", (stream, headers, _flags, rawHeaders?: unknown) => {
    gateway.handle(beginHttp2(stream, headers, (rawHeaders ?? []) as string[], undefined, options.proxies));
  });
  h1.listen(0, "127.0.0.1");
  h2.listen(0, "127.0.0.1");
  await Promise.all([once(h1, "listening"), once(h2, "listening")]);
  const { port } = h1.address() as AddressInfo;
  const h2Port = (h2.address() as AddressInfo).port;
  const session = http2.connect(`http://127.0.0.1:${h2Port}`);
  session.on("error", () => {});

  return {
    gateway,
    port,
    h2Port,
    calls,
    internal,
    send: (protocol, sent) => (protocol === "h1" ? requestH1(port, sent) : requestOn(session, sent)),
    async stop() {
      session.destroy();
      h1.closeAllConnections();
      h1.close();
      h2.close();
      await Promise.all([once(h1, "close"), once(h2, "close")]);
    },
  };
}

/** The largest body the servers of {@link startDefault} take, in bytes. */
export const BODY_LIMIT = 65_536;

/** How a Thing without anything but a uid is answered. */
export const emptyThing = (uid: string, rest = '"tags":[],"labels":{},"parts":[],"line1":"","legacyName":""') =>
  `{"uid":"${uid}","displayName":"","count":0,"size":"0","enabled":false,${rest}}`;

const uidOf: FeatureHandler = (request) => ({ uid: (request as unknown as { uid: string }).uid });

/** Starts a server whose methods do what their names say, as far as one response can show; `getThing` is the test's. */
export function startDefault(getThing: FeatureHandler = uidOf): Promise<FeatureServer> {
  return startFeatureServer(
    {
      GetThing: getThing,
      ListThings: () => ({ things: [{ uid: "a" }], totalCount: 1n }),
      CreateThing: (request) => (request as unknown as { thing?: object }).thing ?? {},
      UpdateThing: (request) => {
        const { thing, updateMask } = request as unknown as { thing: object; updateMask?: { paths: string[] } };
        return { ...thing, tags: updateMask?.paths ?? [] };
      },
      DeleteThing: () => ({}),
      PurgeThing: () => ({}),
      Touch: () => ({}),
      ArchiveThing: uidOf,
      AnyThing: uidOf,
      GetLabels: () => ({ labels: { a: "b" } }),
      Download: () => ({ contentType: "image/png", data: new Uint8Array([0x89, 0x50, 0x00]) }),
      Upload: (request) => {
        const { file } = request as unknown as { file?: { contentType: string; data: Uint8Array } };
        return { contentType: file?.contentType ?? "", size: BigInt(file?.data.length ?? 0) };
      },
    },
    { maxBodyBytes: BODY_LIMIT },
  );
}
