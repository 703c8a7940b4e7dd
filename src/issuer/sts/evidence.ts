import type { Relationship } from "../../iam/identities/relationship.js";
import type { ParsedToken, VerifiedToken } from "../upstream/token.js";
import { type AwsCaller, requireAwsMatch } from "./aws-caller.js";
import { requireClaimMatch } from "./claim-match.js";
import { notAssumable } from "./refusal.js";
import { verifyStaticKeys } from "./static-keys.js";

/** What somebody brings to assume an identity, as far as others had to be asked about it. */
export type Evidence =
  | { readonly by: "claims"; readonly token: VerifiedToken }
  | { readonly by: "keys"; readonly token: ParsedToken; readonly maxLifeS: number | undefined }
  | { readonly by: "aws"; readonly caller: AwsCaller };

/** What evidence is held against besides the identity. */
export interface Circumstances {
  /** The uid of the identity that is to be assumed. */
  readonly identity: string;
  /** The names of this service. */
  readonly ownUrls: readonly string[];
  /** The time, in epoch milliseconds. */
  readonly nowMs: number;
}

/**
 * Requires that an identity may be assumed by who brings the evidence.
 *
 * @throws ApiError UNAUTHENTICATED or PERMISSION_DENIED; which of them tells of the identity, and is for
 * the log: callers are answered alike.
 */
export function requireAssumable(
  relationship: Relationship,
  evidence: Evidence,
  { identity, ownUrls, nowMs }: Circumstances,
): void {
  if (relationship.case === "claimMatch" && evidence.by === "claims") {
    requireClaimMatch(relationship.value, evidence.token, ownUrls, identity);
  } else if (relationship.case === "staticKeys" && evidence.by === "keys") {
    verifyStaticKeys(relationship.value, evidence.token, ownUrls, identity, nowMs, evidence.maxLifeS);
  } else if (relationship.case === "awsIdentity" && evidence.by === "aws") {
    requireAwsMatch(relationship.value, evidence.caller, identity);
  } else {
    throw notAssumable(identity);
  }
}
