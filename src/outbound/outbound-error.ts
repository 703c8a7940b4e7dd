/** Why a request failed, for the operator's log; never shown to callers. */
export class OutboundError extends Error {
  override readonly name: string = "OutboundError";
}

/** The server wants to know who connects by a certificate of TLS, and none is ever presented. */
export class ClientCertificateError extends OutboundError {
  override readonly name = "ClientCertificateError";

  constructor() {
    super("the server wants a client certificate");
  }
}
