// An AWS user or role authenticates with a GetCallerIdentity request that it signed but did not send. Only AWS can
// verify the signature, so the service sends the request. It builds the request from validated parts, to a host from
// its own list, with a fixed query.
import type { Identity_AWSIdentity } from "#gen/chainguard/platform/iam/v2beta1/identities_pb.js";
import { type ApiError, unauthenticated, unavailable } from "../../kernel/errors.js";
import type { RejectReason } from "../../kernel/reject-reason.js";
import { parseJsonObject } from "../../kernel/strict-json.js";
import type { GuardedFetch, GuardedRequest } from "../../outbound/guarded-fetch.js";
import { isOwnUrl, notAssumable } from "./audience.js";
import { createIdentityBudget, matchesValue } from "./claim-pattern.js";

/** A validated request to AWS. Its headers are a credential and must not be logged. */
export interface AwsRequest {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  /** When it was signed, in epoch milliseconds. */
  readonly signedMs: number;
}

/** What a signed request is validated against. */
export interface AwsRequestContext {
  /** The accepted origins, such as `https://sts.amazonaws.com`. */
  readonly stsHosts: readonly string[];
  /** The URLs of this service; the request must be bound to one of them. */
  readonly audiences: readonly string[];
  /** The uid of the identity to assume. */
  readonly identity: string;
  /** The time, in epoch milliseconds. */
  readonly nowMs: number;
}

const QUERY = "Action=GetCallerIdentity&Version=2011-06-15";
/** How far ahead the clock of the signer may be, in milliseconds. */
const MAX_AHEAD_MS = 5 * 60 * 1000;
/** How long AWS accepts a signature, in milliseconds. */
const MAX_AGE_MS = 15 * 60 * 1000;

const AUDIENCE = "chainguard-audience";
const IDENTITY = "chainguard-identity";
/**
 * The headers that a signature must cover, so that the request is valid for one service, one identity and 15 minutes.
 */
const BINDING = ["host", "x-amz-date", AUDIENCE, IDENTITY];
/** The signed headers that may be forwarded; AWS could interpret others. */
const FORWARDED = new Set([...BINDING, "accept", "content-type", "x-amz-content-sha256", "x-amz-security-token"]);
/** Headers that are forwarded although they are not signed. */
const CREDENTIALS = ["authorization", "x-amz-security-token"];

/**
 * Parses the signed `GetCallerIdentity` request in a bearer token: base64url with padding of a POST whose signature
 * (AWS Signature Version 4) covers the host, the date and the headers `Chainguard-Audience` and `Chainguard-Identity`.
 * The order of checks is: encoding, repeated headers, method, host and query, signed headers, audience, identity,
 * date.
 *
 * @throws ApiError UNAUTHENTICATED, whose cause is an {@link AwsRequestError} that names the first failed check
 */
export function parseAwsRequest(bearer: string, expected: AwsRequestContext): AwsRequest {
  const request = parseSignedRequest(bearer);
  if (request === undefined) throw invalidAwsRequest("invalid encoding");
  const headers = new Map(request.headers);
  if (headers.size !== request.headers.length) throw invalidAwsRequest("invalid request", "a header is repeated");
  if (request.method !== "POST") throw invalidAwsRequest("invalid request", "the method is not POST");
  const origin = expected.stsHosts.map((one) => new URL(one)).find(({ host }) => host === headers.get("host"))?.origin;
  if (origin === undefined) throw invalidAwsRequest("invalid request", "the host is not one of AWS STS");
  if (!isGetCallerIdentity(request.target, origin))
    throw invalidAwsRequest("invalid request", "it does not ask GetCallerIdentity");
  const sent = selectHeaders(headers);
  if (!isOwnUrl(headers.get(AUDIENCE) ?? "", expected.audiences)) throw invalidAwsRequest("audience mismatch");
  if (headers.get(IDENTITY) !== expected.identity) throw invalidAwsRequest("identity mismatch");
  const signedMs = parseDateMs(headers.get("x-amz-date") ?? "");
  const aheadMs = signedMs - expected.nowMs;
  if (Number.isNaN(aheadMs)) throw invalidAwsRequest("invalid request", "the date is malformed");
  if (aheadMs > MAX_AHEAD_MS) throw invalidAwsRequest("future-dated");
  if (-aheadMs > MAX_AGE_MS) throw invalidAwsRequest("expired");
  return { url: `${origin}/?${QUERY}`, headers: sent, signedMs };
}

// Some clients write the target in absolute form, and the query parameters in either order.
function isGetCallerIdentity(target: string, origin: string): boolean {
  if (!URL.canParse(target, origin)) return false;
  const url = new URL(target, origin);
  url.searchParams.sort();
  return url.href === `${origin}/?${QUERY}`;
}

function selectHeaders(headers: ReadonlyMap<string, string>): Record<string, string> {
  const signed = parseSignedHeaders(headers.get("authorization") ?? "");
  if (signed === undefined) throw invalidAwsRequest("invalid request", "the signature is malformed");
  if (!BINDING.every((name) => signed.includes(name))) throw invalidAwsRequest("unsigned binding headers");
  if (!signed.every((name) => FORWARDED.has(name) && headers.has(name))) {
    throw invalidAwsRequest("invalid request", "a signed header is missing or unknown");
  }
  const sent: Record<string, string> = { accept: "application/json" };
  for (const name of [...signed, ...CREDENTIALS]) {
    const value = headers.get(name);
    if (value !== undefined && name !== "host") sent[name] = value;
  }
  if (sent.accept !== "application/json") throw invalidAwsRequest("invalid request", "it does not accept JSON");
  return sent;
}

// The basic format of ISO 8601, in UTC; NaN for anything else.
function parseDateMs(text: string): number {
  const match = /^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/.exec(text);
  if (match === null) return Number.NaN;
  const [, year, month, day, hour, minute, second] = match;
  return Date.parse(`${year}-${month}-${day}T${hour}:${minute}:${second}Z`);
}

// The HTTP request in the bearer token. It is parsed strictly: what two parsers could read differently is rejected.

const MAX_LENGTH = 16_384;
const PRINTABLE = /^[ -~]*$/;
const REQUEST_LINE = /^([A-Z]+) (\S+) HTTP\/1\.[01]$/;
const FIELD_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;

/** A request without a body. */
interface SignedRequest {
  readonly method: string;
  /** In origin or absolute form (RFC 9112, section 3.2). */
  readonly target: string;
  /** Names in lower case and trimmed values, in their order, including repeated ones. */
  readonly headers: readonly (readonly [name: string, value: string])[];
}

/**
 * Parses a request from base64url with padding (RFC 4648, section 5), at most 16,384 characters. Lines end with LF or
 * CRLF, and only empty lines follow the headers.
 *
 * @returns undefined when it is malformed
 */
function parseSignedRequest(bearer: string): SignedRequest | undefined {
  const lines = decodeBearer(bearer)?.split(/\r?\n/);
  const end = lines?.indexOf("") ?? -1;
  // Each line ends with a line break, also the empty one.
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

// Decoders accept both alphabets and any padding. Encoding again shows whether the spelling is the canonical one.
function decodeBearer(bearer: string): string | undefined {
  if (bearer.length > MAX_LENGTH) return undefined;
  const bytes = Buffer.from(bearer, "base64url");
  const spelling = bytes.toString("base64").replaceAll("+", "-").replaceAll("/", "_");
  return spelling === bearer ? bytes.toString("latin1") : undefined;
}

const ALGORITHM = "AWS4-HMAC-SHA256 ";
const FIELDS: Readonly<Record<string, RegExp>> = {
  Credential: /^[A-Za-z0-9]{16,128}\/[0-9]{8}\/[a-z0-9-]+\/sts\/aws4_request$/,
  SignedHeaders: /^[a-z0-9-]+(?:;[a-z0-9-]+)*$/,
  Signature: /^[0-9a-f]{64}$/,
};

/**
 * Parses the names of the signed headers in an Authorization header of AWS Signature Version 4 for the service `sts`.
 *
 * @returns undefined when it is not such a header with each of its three parts once
 */
function parseSignedHeaders(authorization: string): readonly string[] | undefined {
  if (!authorization.startsWith(ALGORITHM)) return undefined;
  const fields = authorization.slice(ALGORITHM.length).split(",");
  const given = new Map(fields.map((field) => splitOnce(field.trim())));
  const isComplete =
    fields.length === 3 && Object.entries(FIELDS).every(([name, form]) => form.test(given.get(name) ?? ""));
  return isComplete ? given.get("SignedHeaders")?.split(";") : undefined;
}

function splitOnce(field: string): [string, string] {
  const equals = field.indexOf("=");
  return [field.slice(0, Math.max(equals, 0)), field.slice(equals + 1)];
}

const MAX_RESPONSE_BYTES = 16 * 1024;

/** The signer of a request, as AWS names it. */
export interface AwsCaller {
  /** 12 digits. */
  readonly account: string;
  readonly arn: string;
  readonly userId: string;
}

/**
 * Sends the request to AWS, which verifies the signature and names the signer.
 *
 * @param organisation the root group of the identity to assume
 * @param trace the span of the call
 * @throws ApiError UNAUTHENTICATED, whose cause is an {@link AwsRequestError}, when AWS rejects the request;
 * UNAVAILABLE when AWS cannot be reached, is overloaded, or responds with something else
 */
export async function getCallerIdentity(
  request: AwsRequest,
  fetch: GuardedFetch,
  { organisation, trace }: Pick<GuardedRequest, "organisation" | "trace"> = {},
): Promise<AwsCaller> {
  const { status, bytes } = await fetch(request.url, {
    method: "POST",
    headers: request.headers,
    maxBytes: MAX_RESPONSE_BYTES,
    organisation,
    trace,
  }).catch((cause: unknown) => {
    throw awsUnavailable(cause);
  });
  const response = parseJsonObject(bytes);
  if (status !== 200) {
    const isRejected = status >= 400 && status < 500 && status !== 429 && !isThrottled(response);
    throw isRejected
      ? invalidAwsRequest("rejected by AWS", `status ${status}`)
      : awsUnavailable(new Error(`status ${status}`));
  }
  const caller = getMember(getMember(response, "GetCallerIdentityResponse"), "GetCallerIdentityResult");
  const [account, arn, userId] = [getMember(caller, "Account"), getMember(caller, "Arn"), getMember(caller, "UserId")];
  if (typeof account !== "string" || typeof arn !== "string" || typeof userId !== "string") {
    throw awsUnavailable(new Error("the response has no caller"));
  }
  return { account, arn, userId };
}

/**
 * Requires that account, ARN and user id of the caller match the identity.
 *
 * @param identityUid the uid of the identity that is to be assumed
 * @throws ApiError PERMISSION_DENIED, with the text of an unknown identity.
 */
export function requireAwsMatch(aws: Identity_AWSIdentity, caller: AwsCaller, identityUid: string): void {
  const budget = createIdentityBudget();
  const compared = [
    ["account", { case: "account", value: aws.awsAccount }, caller.account],
    ["ARN", aws.awsArn, caller.arn],
    ["user id", aws.awsUserId, caller.userId],
  ] as const;
  for (const [what, expected, actual] of compared) {
    if (matchesValue(expected, actual, budget)) continue;
    throw notAssumable(identityUid, "match_aws", false, new AwsMismatch(what, expected.value ?? "", actual));
  }
}

/** The cause of an error about a caller of AWS that does not match the identity. */
export class AwsMismatch extends Error {
  readonly what: string;
  /** The text or the pattern of the identity. */
  readonly expected: string;
  readonly actual: string;

  constructor(what: string, expected: string, actual: string) {
    super(`the ${what} of the AWS caller does not match`);
    this.name = "AwsMismatch";
    this.what = what;
    this.expected = expected;
    this.actual = actual;
  }
}

function awsUnavailable(cause: unknown): ApiError {
  return unavailable("AWS does not tell who signed the request", undefined, cause);
}

// AWS responds to throttled requests with status 400, although the request may be valid.
function isThrottled(response: unknown): boolean {
  const code = getMember(getMember(response, "Error"), "Code");
  return typeof code === "string" && code.startsWith("Throttling");
}

// The objects have no prototypes.
function getMember(value: unknown, name: string): unknown {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>)[name] : undefined;
}

// Regions of the partition `aws`. China and GovCloud are other partitions with other accounts; operators who trust
// them configure their hosts.

const regions = [
  ...["af-south-1", "ap-east-1", "ap-east-2", "ap-northeast-1", "ap-northeast-2", "ap-northeast-3"],
  ...["ap-south-1", "ap-south-2", "ap-southeast-1", "ap-southeast-2", "ap-southeast-3", "ap-southeast-4"],
  ...["ap-southeast-5", "ap-southeast-6", "ap-southeast-7", "ca-central-1", "ca-west-1"],
  ...["eu-central-1", "eu-central-2", "eu-north-1", "eu-south-1", "eu-south-2"],
  ...["eu-west-1", "eu-west-2", "eu-west-3", "il-central-1", "me-central-1", "me-south-1", "mx-central-1"],
  ...["sa-east-1", "us-east-1", "us-east-2", "us-west-1", "us-west-2"],
];

/** The default origins of AWS STS: the global one and one for each region. */
export const defaultStsOrigins: readonly string[] = [
  "https://sts.amazonaws.com",
  ...regions.map((region) => `https://sts.${region}.amazonaws.com`),
];

/** Why a signed AWS request is rejected. */
export type AwsOutcome =
  | "invalid encoding"
  | "invalid request"
  | "unsigned binding headers"
  | "audience mismatch"
  | "identity mismatch"
  | "future-dated"
  | "expired"
  | "rejected by AWS";

/** The cause of an UNAUTHENTICATED error about a signed AWS request, for the log only. */
export class AwsRequestError extends Error {
  readonly outcome: AwsOutcome;
  readonly detail: string | undefined;

  constructor(outcome: AwsOutcome, detail?: string) {
    super(detail === undefined ? `AWS request: ${outcome}` : `AWS request: ${outcome}: ${detail}`);
    this.name = "AwsRequestError";
    this.outcome = outcome;
    this.detail = detail;
  }
}

/** What the log has for each outcome: the words for tokens where they say the same. */
const REASONS: Readonly<Record<AwsOutcome, RejectReason>> = {
  "invalid encoding": "token_malformed",
  "invalid request": "aws_request",
  "unsigned binding headers": "aws_request",
  "audience mismatch": "token_audience",
  "identity mismatch": "aws_request",
  "future-dated": "token_claims",
  expired: "token_expired",
  "rejected by AWS": "aws_request",
};

/** Builds the UNAUTHENTICATED error of every invalid token; only its `cause` has the outcome. */
function invalidAwsRequest(outcome: AwsOutcome, detail?: string): ApiError {
  return unauthenticated(new AwsRequestError(outcome, detail), REASONS[outcome]);
}
