// Why a service cannot be reached, and what to do about it. Node tells the cause by the code of an error, which libraries
// wrap in errors of their own. This file loads no RPC library, as errors.ts.
import { Code, CommandError } from "../errors.js";

/** A cause as a sentence without its subject, the service, and a remedy. */
interface Failure {
  readonly cause: string;
  readonly remedy: string;
}

/** How much of the names of a certificate is printed, in characters. */
const MAX_HOSTS = 200;

const OTHER_ADDRESS = "is this its address? --api URL, or ARBOR_API, names another";

const untrusted: Failure = {
  cause: "this machine does not trust its certificate",
  remedy: "trust a private authority with NODE_EXTRA_CA_CERTS=FILE, a PEM file with its certificate",
};

const noTls: Failure = { cause: "it does not speak TLS", remedy: OTHER_ADDRESS };

const noHttp2: Failure = {
  cause: "it does not speak HTTP/2, which gRPC needs",
  remedy: `${OTHER_ADDRESS}; a proxy before the service must pass HTTP/2 on`,
};

const closed: Failure = {
  cause: "it closed the connection",
  remedy: `${OTHER_ADDRESS}; that of a service with TLS begins with https://`,
};

const byCode: Readonly<Record<string, Failure>> = {
  ECONNREFUSED: { cause: "nothing listens there", remedy: `is the service running, and ${OTHER_ADDRESS}` },
  ENOTFOUND: { cause: "its host name has no address", remedy: OTHER_ADDRESS },
  EAI_AGAIN: { cause: "its host name cannot be resolved", remedy: "is there a network, and a name server?" },
  EHOSTUNREACH: { cause: "no route leads there", remedy: OTHER_ADDRESS },
  ENETUNREACH: { cause: "no network leads there", remedy: OTHER_ADDRESS },
  ETIMEDOUT: { cause: "it did not answer in time", remedy: OTHER_ADDRESS },
  UND_ERR_CONNECT_TIMEOUT: { cause: "it did not answer in time", remedy: OTHER_ADDRESS },
  ECONNRESET: closed,
  EPIPE: closed,
  UND_ERR_SOCKET: closed,
  ERR_HTTP2_STREAM_CANCEL: closed,
  ERR_HTTP2_ERROR: noHttp2,
  ERR_SSL_TLSV1_ALERT_NO_APPLICATION_PROTOCOL: noHttp2,
  ERR_SSL_WRONG_VERSION_NUMBER: noTls,
  ERR_SSL_PACKET_LENGTH_TOO_LONG: noTls,
  DEPTH_ZERO_SELF_SIGNED_CERT: untrusted,
  SELF_SIGNED_CERT_IN_CHAIN: untrusted,
  UNABLE_TO_GET_ISSUER_CERT: untrusted,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: untrusted,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: untrusted,
  CERT_SIGNATURE_FAILURE: untrusted,
  CERT_UNTRUSTED: untrusted,
  INVALID_CA: untrusted,
  CERT_HAS_EXPIRED: {
    cause: "its certificate has expired",
    remedy: "its operator must renew the certificate, unless the clock of this machine is wrong",
  },
  CERT_NOT_YET_VALID: {
    cause: "its certificate is not valid yet",
    remedy: "is the clock of this machine right?",
  },
  CERT_REVOKED: { cause: "its certificate was revoked", remedy: "its operator must renew the certificate" },
  ERR_TLS_CERT_ALTNAME_INVALID: {
    cause: "its certificate is for another host",
    remedy: "name the service by a host of the certificate, with --api URL or ARBOR_API",
  },
};

/**
 * Finds why a connection to `api` failed.
 *
 * @returns UNAVAILABLE with cause and remedy; undefined for all other errors
 */
export function findConnectionFailure(error: unknown, api: string): CommandError | undefined {
  const failure = findFailure(error);
  return failure && describeUnreachable(api, failure, error);
}

/** Finds why a connection to a server failed that is not the service: a sentence without its subject, the server. */
export function findFailureCause(error: unknown): string | undefined {
  return findFailure(error)?.cause;
}

function findFailure(error: unknown): Failure | undefined {
  for (let at = error; at instanceof Error; at = at.cause) {
    // Of a host with several addresses, the error of the first says as much as the others.
    const one = at instanceof AggregateError ? (at.errors[0] as unknown) : at;
    const { code, cert } = (one ?? {}) as { readonly code?: unknown; readonly cert?: Certificate };
    if (typeof code !== "string") continue;
    const failure = byCode[code] ?? (code.startsWith("ERR_SSL_") ? findTlsFailure(code) : undefined);
    if (failure === undefined) continue;
    const hosts = code === "ERR_TLS_CERT_ALTNAME_INVALID" ? `: it names ${listHosts(cert)}` : "";
    return { cause: `${failure.cause}${hosts} (${code})`, remedy: failure.remedy };
  }
  return undefined;
}

/** UNAVAILABLE for a connection that ended before a response, for a reason that Node does not tell. */
export function describeLostConnection(api: string, error: unknown): CommandError {
  return describeUnreachable(api, closed, error);
}

/** DEADLINE_EXCEEDED for a service that has not responded in time. */
export function describeTimeout(api: string, error: unknown, ms?: number): CommandError {
  const text = `no response from ${api} within ${ms === undefined ? "the time of a call" : `${ms} ms`}`;
  return new CommandError(Code.DeadlineExceeded, `${text}\n  ${OTHER_ADDRESS}`, error);
}

/** UNAVAILABLE for an address at which something else than the service responds. */
export function describeForeignResponse(api: string, status: string, error: unknown): CommandError {
  const remedy = `${OTHER_ADDRESS}; a proxy before the service must pass gRPC on`;
  return describeUnreachable(api, { cause: `the response is not that of an Arbor service (${status})`, remedy }, error);
}

function describeUnreachable(api: string, { cause, remedy }: Failure, error: unknown): CommandError {
  return new CommandError(Code.Unavailable, `${api} cannot be reached: ${cause}\n  ${remedy}`, error);
}

function findTlsFailure(code: string): Failure {
  return { cause: `TLS failed with ${code}`, remedy: OTHER_ADDRESS };
}

/** The part of a certificate that the error of Node has. */
interface Certificate {
  /** Such as `DNS:b.example, IP Address:127.0.0.1`. */
  readonly subjectaltname?: unknown;
}

function listHosts(certificate: Certificate | undefined): string {
  const names = String(certificate?.subjectaltname ?? "none").slice(0, MAX_HOSTS);
  return names.replaceAll(/(DNS|IP Address):/g, "");
}
