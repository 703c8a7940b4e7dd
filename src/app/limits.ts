// The limits of the server that follow from settings and from the limits of the process.
import type { Settings } from "../config/config.js";
import { defaultLimits, type Limits } from "../transport/http/limits/limits.js";

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
    responseBufferBytes: settings.responseBuffer,
    connectionsPerAddress: settings.connectionsPerAddress,
    maxWaitMs: settings.maxWait * 1000,
    keepAliveMs: settings.keepAlive * 1000,
    drainMs: settings.drainTime * 1000,
  };
}
