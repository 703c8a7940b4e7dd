// What the settings say of the server.
import type { Settings } from "../config/config.js";
import type { ListenAddress } from "../kernel/ip-address.js";
import { defaultLimits, type Limits } from "../transport/http/limits.js";

/** Where a server that listens there is reached. */
export function urlOf({ tlsCert }: Settings, { host, port }: ListenAddress): string {
  const scheme = tlsCert === undefined ? "http" : "https";
  return `${scheme}://${host.includes(":") ? `[${host}]` : host}:${port}`;
}

/** The files of the database, keys and logs, connections to others, and what is opened for a moment. */
const RESERVED_FILES = 200;

/**
 * The limits of a server.
 *
 * @param fileLimit how many files and connections the process may open: some of them are kept free of connections, so that
 * the database, keys and requests to others do not fail when there are too many
 */
export function limitsOf(settings: Settings, fileLimit = Number.POSITIVE_INFINITY): Limits {
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
