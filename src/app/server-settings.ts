// The parts of the server that follow from the settings.
import type { Settings } from "../config/config.js";
import type { ListenAddress } from "../kernel/ip-address.js";
import { defaultLimits, type Limits } from "../transport/http/limits.js";

/** Builds the URL of a server that listens on an address. */
export function buildServerUrl({ tlsCert }: Settings, { host, port }: ListenAddress): string {
  const scheme = tlsCert === undefined ? "http" : "https";
  return `${scheme}://${host.includes(":") ? `[${host}]` : host}:${port}`;
}

/** File descriptors for the database, keys, logs, connections to other services and temporary files. */
const RESERVED_FILES = 200;

/**
 * Builds the limits of a server.
 *
 * @param fileLimit how many file descriptors the process may have: some are reserved, so that too many connections do
 * not make the database, keys and outgoing requests fail
 */
export function buildLimits(settings: Settings, fileLimit = Number.POSITIVE_INFINITY): Limits {
  const room = fileLimit - Math.min(RESERVED_FILES, Math.ceil(fileLimit / 2));
  return {
    ...defaultLimits,
    connections: Math.min(defaultLimits.connections, room),
    requestBufferBytes: settings.requestBuffer,
    answerBufferBytes: settings.answerBuffer,
    connectionsPerAddress: settings.connectionsPerAddress,
    queueDelayMs: settings.overloadDelay,
    drainMs: settings.drainTime * 1000,
  };
}
