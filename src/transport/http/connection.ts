import type { ConnectionReason } from "./admission.js";

/** A connection that was accepted. */
export interface Connection {
  /** The queue in which its requests wait, unless a proxy names the address of another. */
  readonly key: string;
  /** The address at its other end. */
  readonly address: string;
  /** Whether the requests of many addresses come by it. */
  readonly isProxy: boolean;
  /** Which limit it exceeds; then it is one of the reserve. */
  readonly rejection: ConnectionReason | undefined;
  /** How many of its requests are open. */
  open: number;
  isClosed: boolean;
  /** Ends it while it is idle; an HTTP/2 session replaces it. */
  end(): void;
}
