// Deactivated identities: those of people whom the directory of their provider has deactivated or deleted. Such an identity
// keeps what it is bound to, and has no rights, no valid tokens and no sign-in. Where that is enforced:
//
//   calls with API tokens   no grant is found of it (GrantReader of store/iam/access.ts, by which all calls are authorized)
//   what is redeemed later  refresh tokens, sessions, codes, devices, ID tokens: isLoginValid of issuer/tokens.ts
//   what is issued          readIssueDate of issuer/tokens.ts
//   sign-in and exchange    requireAdmitted of iam/people/directory-person.ts
//   owners                  isHolder of store/iam/role-bindings.ts, by which an organisation keeps an active one
//   answers about rights    hasNoAccess of iam/access/holder.ts
//   invites of the identity requireAcceptable of iam/people/accept-invite.ts
import { type ApiError, notPermitted } from "../../kernel/errors.js";
import { identityKind } from "../../store/iam/identities.js";
import type { Tx } from "../../store/transaction.js";
import { requireNotSoleOwner } from "../rights.js";
import { revokeAllTokens } from "./revocation.js";

/**
 * Deactivates an identity, or activates it again. Nothing happens where it is so already, and to one that does not exist.
 * Deactivation also revokes all tokens, so that none of before is valid when the identity is activated again.
 *
 * @param nowMs epoch milliseconds
 * @throws ApiError FAILED_PRECONDITION of type OWNER_REQUIRED where an organisation would be left without an active owner
 */
export async function setIdentityActive(tx: Tx, uid: string, active: boolean, nowMs: number): Promise<void> {
  const row = await tx.table(identityKind).find(uid);
  if (row === undefined || active === (row.deactivateTimeMs === null)) return;
  if (!active) {
    await requireNotSoleOwner(tx, uid);
    await revokeAllTokens(tx, row, nowMs);
  }
  await tx.table(identityKind).setDeactivated(uid, active ? null : nowMs);
}

/** PERMISSION_DENIED for a person whom the directory of the provider has deactivated or deleted. */
export function accountDeactivated(): ApiError {
  const rule = "the directory of your organisation has deactivated this account: ask its administrators";
  return notPermitted(rule, "person_deactivated");
}
