// Open connections and whom their requests are held for.
import type { IncomingHttpHeaders } from "node:http";
import { isTrustedProxy, peerAddress, type TrustedProxies } from "./http-message.js";
import { type Buffers, type ConnectionHolders, RequestBuffers } from "./request-buffers.js";

/** Keeps the accounts of bytes of all connections. */
export interface Connections {
  /** Opens the holders of a connection; whoever opens them closes them with it. */
  open(socketAddress: string | undefined): ConnectionHolders;

  /** Opens the buffers of a request. */
  begin(connection: ConnectionHolders, socketAddress: string | undefined, headers: IncomingHttpHeaders): RequestBuffers;
}

/**
 * Creates it.
 *
 * @param proxies whose requests count as those of the addresses they name
 * @param behindProxy whether every connection is a proxy's, also where none is trusted to name addresses
 */
export function createConnections(
  buffers: Buffers,
  proxies: TrustedProxies | undefined,
  behindProxy: boolean,
): Connections {
  const isProxy = (address: string | undefined) =>
    behindProxy || (proxies !== undefined && isTrustedProxy(address, proxies));
  return {
    open: (address) => buffers.connect(address, isProxy(address)),
    begin(connection, address, headers) {
      const peer = connection.isProxy ? peerAddress(address, headers, proxies) : undefined;
      return new RequestBuffers(buffers, connection, peer === address ? undefined : peer);
    },
  };
}
