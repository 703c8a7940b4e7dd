// Who calls the endpoint: a directory, by the credential of its provider.
import { explainScimRejection, findScimCredential } from "../iam/identity-providers/scim-credential.js";
import { parseBearer } from "../kernel/bearer.js";
import { sha256 } from "../kernel/digest.js";
import type { RejectReason } from "../kernel/reject-reason.js";
import { type IdentityProviderRow, identityProviderKind } from "../store/iam/identity-providers.js";
import type { Tx } from "../store/transaction.js";
import { ScimError } from "./protocol/error.js";

const TOKEN = /^cgscim_[0-9a-f]{64}$/;

const REASONS = { unknown: "credential", expired: "token_expired", revoked: "token_revoked" } as const;

/** The credential of a request is missing or wrong. */
export class ScimUnauthorized extends ScimError {
  readonly rejection: RejectReason;

  constructor(rejection: RejectReason) {
    super(401, "the Authorization header must have a SCIM token that is valid for this identity provider");
    this.rejection = rejection;
  }
}

/**
 * Parses the token of a request.
 *
 * @throws ScimUnauthorized
 */
export function parseToken(authorization: string | undefined): string {
  const token = parseBearer(authorization);
  if (token === undefined) throw new ScimUnauthorized("token_missing");
  if (!TOKEN.test(token)) throw new ScimUnauthorized("token_malformed");
  return token;
}

/**
 * Reads the provider that a token is valid for. Each unit of work does it, so that a revocation works at once.
 *
 * @throws ScimUnauthorized, ScimError 403 while SCIM is off
 */
export async function requireProvider(tx: Tx, uid: string, token: string, nowMs: number): Promise<IdentityProviderRow> {
  const provider = await tx.table(identityProviderKind).find(uid);
  if (provider === undefined) throw new ScimUnauthorized("provider_unknown");
  const { scim } = provider;
  if (findScimCredential(scim, token, nowMs) === undefined) {
    throw new ScimUnauthorized(REASONS[explainScimRejection(scim, token)]);
  }
  if (!scim.enabled) throw new ScimError(403, "SCIM is off for this identity provider");
  return provider;
}

/** What tells a token apart in the audit log, and is too short to be used for anything else. */
export function formatCredentialId(token: string): string {
  return sha256(token).toString("hex").slice(0, 16);
}
