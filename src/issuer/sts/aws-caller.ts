import type { Identity_AWSIdentity } from "#gen/chainguard/platform/iam/v2beta1/identities_pb.js";
import { type ApiError, unavailable } from "../../kernel/errors.js";
import type { GuardedFetch } from "../../outbound/guarded-fetch.js";
import { jsonObjectIn } from "../upstream/json-object.js";
import type { AwsRequest } from "./aws.js";
import { fits, identityBudget } from "./pattern.js";
import { notAssumable, refusedAws } from "./refusal.js";

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
  const answer = jsonObjectIn(bytes);
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
