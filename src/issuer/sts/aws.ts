// An AWS user or role proves itself with a request to AWS that it signed but did
// not send: only AWS can check the signature, so we send it. What is sent is put
// together here from parts that were looked at, to a host from our own list; the
// question asked is ours, not the caller's.

import type { Identity_AWSIdentity } from "#gen/chainguard/platform/iam/v2beta1/identities_pb.js";
import { type ApiError, unauthenticated, unavailable } from "../../kernel/errors.js";
import { parseJsonObject } from "../../kernel/strict-json.js";
import type { GuardedFetch } from "../../outbound/guarded-fetch.js";
import { isOurName, notAssumable } from "./audience.js";
import { fits, identityBudget } from "./pattern.js";

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

// An HTTP request as text, and the signature on it. Read strictly: whatever one
// reader would take another way than the next is no request.

const MAX_LENGTH = 16_384;
const PRINTABLE = /^[ -~]*$/;
const REQUEST_LINE = /^([A-Z]+) (\S+) HTTP\/1\.[01]$/;
const FIELD_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;

/** A request without a body. */
export interface SignedRequest {
  readonly method: string;
  /** In origin or absolute form (RFC 9112, section 3.2). */
  readonly target: string;
  /** Names in lower case, values without the blanks around them; in their order, repeated ones too. */
  readonly headers: readonly (readonly [name: string, value: string])[];
}

/**
 * Reads a request from base64url with padding (RFC 4648, section 5), at most 16,384 characters of it.
 * Lines end with LF or CRLF; after the empty one there is nothing but more of them.
 *
 * @returns undefined when it is not that
 */
export function readSignedRequest(bearer: string): SignedRequest | undefined {
  const lines = decoded(bearer)?.split(/\r?\n/);
  const end = lines?.indexOf("") ?? -1;
  // A line break ends each line, the empty one as well.
  if (lines === undefined || end < 1 || end === lines.length - 1) return undefined;
  if (!lines.every((line, i) => PRINTABLE.test(line) && (i < end || line === ""))) return undefined;
  const [, method, target] = REQUEST_LINE.exec(lines[0] ?? "") ?? [];
  if (method === undefined || target === undefined) return undefined;
  const headers: [string, string][] = [];
  for (const line of lines.slice(1, end)) {
    const colon = line.indexOf(":");
    const name = line.slice(0, Math.max(colon, 0));
    if (!FIELD_NAME.test(name)) return undefined;
    headers.push([name.toLowerCase(), line.slice(colon + 1).trim()]);
  }
  return { method, target, headers };
}

// Decoders take both alphabets and any padding; only the one spelling comes back the same.
function decoded(bearer: string): string | undefined {
  if (bearer.length > MAX_LENGTH) return undefined;
  const bytes = Buffer.from(bearer, "base64url");
  const spelling = bytes.toString("base64").replaceAll("+", "-").replaceAll("/", "_");
  return spelling === bearer ? bytes.toString("latin1") : undefined;
}

const ALGORITHM = "AWS4-HMAC-SHA256 ";
const PARTS: Readonly<Record<string, RegExp>> = {
  Credential: /^[A-Za-z0-9]{16,128}\/[0-9]{8}\/[a-z0-9-]+\/sts\/aws4_request$/,
  SignedHeaders: /^[a-z0-9-]+(?:;[a-z0-9-]+)*$/,
  Signature: /^[0-9a-f]{64}$/,
};

/**
 * The names of the headers that an Authorization header of AWS Signature Version 4 says are signed, for
 * the service `sts`.
 *
 * @returns undefined when it is not such a header, each of its three parts once
 */
export function signedHeadersOf(authorization: string): readonly string[] | undefined {
  if (!authorization.startsWith(ALGORITHM)) return undefined;
  const parts = authorization.slice(ALGORITHM.length).split(",");
  const given = new Map(parts.map((part) => splitOnce(part.trim())));
  const whole = parts.length === 3 && Object.entries(PARTS).every(([name, form]) => form.test(given.get(name) ?? ""));
  return whole ? given.get("SignedHeaders")?.split(";") : undefined;
}

function splitOnce(part: string): [string, string] {
  const equals = part.indexOf("=");
  return [part.slice(0, Math.max(equals, 0)), part.slice(equals + 1)];
}

const MAX_ANSWER_BYTES = 16 * 1024;

/** Who signed a request, as AWS says. */
export interface AwsCaller {
  /** 12 digits. */
  readonly account: string;
  readonly arn: string;
  readonly userId: string;
}

/**
 * Has AWS check the signature and tell who made it.
 *
 * @param organisation the root group of the identity that is to be assumed
 * @throws ApiError UNAUTHENTICATED, its cause an {@link AwsRefusal}, when AWS rejects the request;
 * UNAVAILABLE when AWS cannot be reached, is overloaded, or answers something else than it should.
 */
export async function askAws(request: AwsRequest, fetch: GuardedFetch, organisation?: string): Promise<AwsCaller> {
  const { status, bytes } = await fetch(request.url, {
    method: "POST",
    headers: request.headers,
    maxBytes: MAX_ANSWER_BYTES,
    organisation,
  }).catch((cause: unknown) => {
    throw notAnswered(cause);
  });
  const answer = parseJsonObject(bytes);
  if (status !== 200) {
    const isRejected = status >= 400 && status < 500 && status !== 429 && !isThrottled(answer);
    throw isRejected ? refusedAws("rejected by AWS", `status ${status}`) : notAnswered(new Error(`status ${status}`));
  }
  const caller = member(member(answer, "GetCallerIdentityResponse"), "GetCallerIdentityResult");
  const [account, arn, userId] = [member(caller, "Account"), member(caller, "Arn"), member(caller, "UserId")];
  if (typeof account !== "string" || typeof arn !== "string" || typeof userId !== "string") {
    throw notAnswered(new Error("the answer names no caller"));
  }
  return { account, arn, userId };
}

/**
 * Requires that the caller is whom the identity stands for: account, ARN and user id.
 *
 * @param identityUid the uid of the identity that is to be assumed
 * @throws ApiError PERMISSION_DENIED, with the text of an unknown identity.
 */
export function requireAwsMatch(aws: Identity_AWSIdentity, caller: AwsCaller, identityUid: string): void {
  const budget = identityBudget();
  const same =
    aws.awsAccount === caller.account &&
    fits(aws.awsArn, caller.arn, budget) &&
    fits(aws.awsUserId, caller.userId, budget);
  if (!same) throw notAssumable(identityUid);
}

function notAnswered(cause: unknown): ApiError {
  return unavailable("AWS does not tell who signed the request", undefined, cause);
}

// AWS says so with status 400, though it says nothing about the request.
function isThrottled(answer: unknown): boolean {
  const code = member(member(answer, "Error"), "Code");
  return typeof code === "string" && code.startsWith("Throttling");
}

// The objects come without prototypes.
function member(value: unknown, name: string): unknown {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>)[name] : undefined;
}

// Regions of the partition `aws`. China and GovCloud are partitions of their own,
// with accounts of their own: who trusts those names their hosts.

const regions = [
  ...["af-south-1", "ap-east-1", "ap-east-2", "ap-northeast-1", "ap-northeast-2", "ap-northeast-3"],
  ...["ap-south-1", "ap-south-2", "ap-southeast-1", "ap-southeast-2", "ap-southeast-3", "ap-southeast-4"],
  ...["ap-southeast-5", "ap-southeast-6", "ap-southeast-7", "ca-central-1", "ca-west-1"],
  ...["eu-central-1", "eu-central-2", "eu-north-1", "eu-south-1", "eu-south-2"],
  ...["eu-west-1", "eu-west-2", "eu-west-3", "il-central-1", "me-central-1", "me-south-1", "mx-central-1"],
  ...["sa-east-1", "us-east-1", "us-east-2", "us-west-1", "us-west-2"],
];

/** The origins at which AWS tells who signed a request: the global one and that of each region. */
export const defaultStsOrigins: readonly string[] = [
  "https://sts.amazonaws.com",
  ...regions.map((region) => `https://sts.${region}.amazonaws.com`),
];

/** Why a signed AWS request is not accepted. */
export type AwsOutcome =
  | "invalid encoding"
  | "invalid request"
  | "unsigned binding headers"
  | "audience mismatch"
  | "identity mismatch"
  | "future-dated"
  | "expired"
  | "rejected by AWS";

/** The cause of an UNAUTHENTICATED error about a signed AWS request; for the log, which may hold all of it. */
export class AwsRefusal extends Error {
  readonly outcome: AwsOutcome;

  constructor(outcome: AwsOutcome, detail?: string) {
    super(detail === undefined ? `AWS request: ${outcome}` : `AWS request: ${outcome}: ${detail}`);
    this.name = "AwsRefusal";
    this.outcome = outcome;
  }
}

/** UNAUTHENTICATED with the text of every bad token; the outcome is in the `cause` alone. */
export function refusedAws(outcome: AwsOutcome, detail?: string): ApiError {
  return unauthenticated(new AwsRefusal(outcome, detail));
}
