// What the settings say of the server.
import { readFileSync } from "node:fs";
import type { Settings } from "../config/config.js";
import { defaultLimits, type Limits } from "../transport/http/limits.js";
import type { ListenAddress } from "../transport/http/listener.js";

/** Where a server that listens there is reached. */
export function urlOf({ tlsCert }: Settings, { host, port }: ListenAddress): string {
  const scheme = tlsCert === undefined ? "http" : "https";
  return `${scheme}://${host.includes(":") ? `[${host}]` : host}:${port}`;
}

/** The limits of a server. */
export function limitsOf(settings: Settings): Limits {
  return {
    ...defaultLimits,
    requestBufferBytes: settings.requestBuffer,
    answerBufferBytes: settings.answerBuffer,
    connectionsPerAddress: settings.connectionsPerAddress,
    queueDelayMs: settings.overloadDelay,
    drainMs: settings.drainTime * 1000,
  };
}

/** The certificate and its key, as the files hold them now; undefined without TLS. */
export function tlsOf({ tlsCert, tlsKey }: Settings) {
  if (tlsCert === undefined || tlsKey === undefined) return undefined;
  return { cert: readFileSync(tlsCert), key: readFileSync(tlsKey) };
}
