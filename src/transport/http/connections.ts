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

/** Creates it. @param proxies whose requests count as those of the addresses they name */
export function createConnections(buffers: Buffers, proxies: TrustedProxies | undefined): Connections {
  return {
    open: (address) => buffers.connect(address, proxies !== undefined && isTrustedProxy(address, proxies)),
    begin: (connection, address, headers) =>
      new RequestBuffers(buffers, connection, connection.isProxy ? peerAddress(address, headers, proxies) : undefined),
  };
}
