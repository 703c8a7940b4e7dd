// An AWS user or role proves itself with a request to AWS that it signed but did
// not send: only AWS can check the signature, so we send it. What is sent is put
// together here from parts that were looked at, to a host from our own list; the
// question asked is ours, not the caller's.
import { isOurName } from "./audience.js";
import { refusedAws } from "./refusal.js";
import { readSignedRequest, signedHeadersOf } from "./signed-request.js";

/** A signed request that may be sent to AWS. Its headers are a credential: never logged. */
export interface AwsRequest {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** What a signed request is held against. */
export interface AwsExpectation {
  /** Origins such as `https://sts.amazonaws.com`, any of which may be asked. */
  readonly stsHosts: readonly string[];
  /** The URLs of this service, any of which the request may be bound to. */
  readonly audiences: readonly string[];
  /** The uid of the identity that is to be assumed. */
  readonly identity: string;
  /** The time, in epoch milliseconds. */
  readonly nowMs: number;
}

const QUERY = "Action=GetCallerIdentity&Version=2011-06-15";
/** How far ahead the clock of the signer may be, in milliseconds. */
const MAX_AHEAD_MS = 5 * 60 * 1000;
/** For how long AWS accepts a signature, in milliseconds. */
const MAX_AGE_MS = 15 * 60 * 1000;

const AUDIENCE = "chainguard-audience";
const IDENTITY = "chainguard-identity";
/** What a signature must cover so that the request is good for one service, one identity and a quarter of an hour. */
const BINDING = ["host", "x-amz-date", AUDIENCE, IDENTITY];
/** Signed headers that can be sent on; another may mean something to AWS that was not meant here. */
const KNOWN = new Set([...BINDING, "accept", "content-type", "x-amz-content-sha256", "x-amz-security-token"]);
/** What AWS gets besides the signed headers. */
const CREDENTIALS = ["authorization", "x-amz-security-token"];

/**
 * Reads the signed `GetCallerIdentity` request that stands as the bearer: base64url with padding of a
 * POST whose signature (AWS Signature Version 4) covers the host, the date and the headers
 * `Chainguard-Audience` and `Chainguard-Identity`. Checked in this order: encoding, repeated headers,
 * method, host and question, signed headers, audience, identity, date.
 *
 * @throws ApiError UNAUTHENTICATED, whose cause is an {@link AwsRefusal} naming the first check that failed.
 */
export function parseAwsRequest(bearer: string, expected: AwsExpectation): AwsRequest {
  const request = readSignedRequest(bearer);
  if (request === undefined) throw refusedAws("invalid encoding");
  const headers = new Map(request.headers);
  if (headers.size !== request.headers.length) throw refusedAws("invalid request", "a header is repeated");
  if (request.method !== "POST") throw refusedAws("invalid request", "the method is not POST");
  const origin = expected.stsHosts.map((one) => new URL(one)).find(({ host }) => host === headers.get("host"))?.origin;
  if (origin === undefined) throw refusedAws("invalid request", "the host is not one of AWS STS");
  if (!asksWhoCalls(request.target, origin)) throw refusedAws("invalid request", "it does not ask GetCallerIdentity");
  const sent = headersToSend(headers);
  if (!isOurName(headers.get(AUDIENCE) ?? "", expected.audiences)) throw refusedAws("audience mismatch");
  if (headers.get(IDENTITY) !== expected.identity) throw refusedAws("identity mismatch");
  const aheadMs = dateMs(headers.get("x-amz-date") ?? "") - expected.nowMs;
  if (Number.isNaN(aheadMs)) throw refusedAws("invalid request", "the date is malformed");
  if (aheadMs > MAX_AHEAD_MS) throw refusedAws("future-dated");
  if (-aheadMs > MAX_AGE_MS) throw refusedAws("expired");
  return { url: `${origin}/?${QUERY}`, headers: sent };
}

// Some clients write the absolute form of the target, and their queries in either order.
function asksWhoCalls(target: string, origin: string): boolean {
  if (!URL.canParse(target, origin)) return false;
  const url = new URL(target, origin);
  url.searchParams.sort();
  return url.href === `${origin}/?${QUERY}`;
}

function headersToSend(headers: ReadonlyMap<string, string>): Record<string, string> {
  const signed = signedHeadersOf(headers.get("authorization") ?? "");
  if (signed === undefined) throw refusedAws("invalid request", "the signature is malformed");
  if (!BINDING.every((name) => signed.includes(name))) throw refusedAws("unsigned binding headers");
  if (!signed.every((name) => KNOWN.has(name) && headers.has(name))) {
    throw refusedAws("invalid request", "a signed header is missing or unknown");
  }
  const sent: Record<string, string> = { accept: "application/json" };
  for (const name of [...signed, ...CREDENTIALS]) {
    const value = headers.get(name);
    if (value !== undefined && name !== "host") sent[name] = value;
  }
  if (sent.accept !== "application/json") throw refusedAws("invalid request", "it does not accept JSON");
  return sent;
}

// The basic format of ISO 8601, in UTC; NaN for anything else.
function dateMs(text: string): number {
  const parts = /^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/.exec(text);
  if (parts === null) return Number.NaN;
  const [, year, month, day, hour, minute, second] = parts;
  return Date.parse(`${year}-${month}-${day}T${hour}:${minute}:${second}Z`);
}
