// The package `arbor-platform/client`, for other services. It loads nothing of the server: only connect, the protobuf
// runtime, Node and the generated stubs.
export type { CallOptions, Client, Interceptor } from "@connectrpc/connect";
export { Code, ConnectError } from "@connectrpc/connect";
export { type ClientTls, type Connection, type ConnectionOptions, connectTo, type Protocol } from "./connection.js";
export { errorInfo, fieldViolations, preconditionViolations, quotaViolations } from "./error-details.js";
export {
  type EventData,
  type EventHeaders,
  EventRejected,
  type EventVerifierOptions,
  eventVerifier,
  type VerifiedEvent,
  type VerifyEvent,
} from "./event-verifier.js";
export {
  type ExchangedTokenOptions,
  exchangedToken,
  type RefreshingTokenOptions,
  refreshingToken,
  type TokenFileOptions,
  tokenFile,
} from "./refreshing-token.js";
export { staticToken, type TokenSource } from "./token-source.js";
