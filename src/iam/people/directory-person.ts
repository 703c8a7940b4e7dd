// What the directory of an organisation's provider says of a person who signs in. A person whom the directory has sent by SCIM
// is linked with the identity that signs in as that person: by the external id alone, once, in the transaction of the sign-in.
import {
  IdentityProvider_OIDC_CorrelationRule as CorrelationRule,
  type IdentityProvider_OIDC,
} from "#gen/chainguard/platform/iam/v2beta1/identity_providers_pb.js";
import { notPermitted } from "../../kernel/errors.js";
import type { IdentityRow } from "../../store/iam/identities.js";
import { findDefaultRole } from "../../store/iam/identity-providers.js";
import { type ScimUserRow, scimUserKind } from "../../store/iam/scim-users.js";
import type { Tx } from "../../store/transaction.js";
import type { DirectoryContext } from "../directories/rights.js";
import { followLink } from "../directories/work.js";
import { accountDeactivated } from "../identities/deactivation.js";
import { oidcFromJson } from "../identity-providers/identity-provider.js";
import type { AssertedIdentity } from "./registration.js";

/**
 * Makes sure that the directory of its provider lets a person sign in.
 *
 * @param person the identity of the person; undefined for somebody who is not registered
 * @returns the person of the directory that {@link linkPerson} links with the identity; undefined where there is nothing to link
 * @throws ApiError PERMISSION_DENIED for a person whom the directory has deactivated or deleted; for somebody who is not
 * registered also where the directory must send people and has not, or where the person is linked with another identity.
 */
export async function requireAdmitted(
  tx: Tx,
  asserted: AssertedIdentity,
  person: IdentityRow | undefined,
): Promise<ScimUserRow | undefined> {
  const { provider } = asserted;
  if (person !== undefined && person.deactivateTimeMs !== null) throw accountDeactivated();
  if (provider === undefined) return undefined;
  const users = tx.table(scimUserKind);
  const linked = person && (await users.findByIdentity(person.uid));
  if (linked !== undefined) {
    if (!linked.active) throw accountDeactivated();
    return undefined;
  }
  const key = findExternalId(asserted, oidcFromJson(provider.oidc));
  const row = key === undefined ? undefined : await users.findByExternalId(provider.uid, key);
  const former = key === undefined ? undefined : await users.findFormer(provider.uid, key);
  if (former !== undefined || row?.active === false) throw accountDeactivated();
  if (row !== undefined && row.identityUid === null) return row;
  if (person !== undefined) return undefined;
  if (row !== undefined) {
    const rule =
      "another account has signed in as this person of your organisation's directory: ask its administrators";
    throw notPermitted(rule, "person_unknown");
  }
  if (provider.scim.enabled && findDefaultRole(provider) === undefined) {
    const rule = "the directory of your organisation has not sent this account: ask its administrators to assign it";
    throw notPermitted(rule, "person_unknown");
  }
  return undefined;
}

/**
 * Links a person of a directory with the identity that signs in as that person, which gets what the groups of the directory
 * grant. The directory sees no change of the person.
 */
export async function linkPerson(
  tx: Tx,
  row: ScimUserRow,
  identityUid: string,
  context: DirectoryContext,
): Promise<void> {
  await tx.table(scimUserKind).replace({ ...row, identityUid });
  await followLink(tx, row.providerUid, identityUid, context);
}

/**
 * Finds the external id that the directory of the provider has for the person of a token: the subject, or the claim `oid` where
 * the provider says so. Nothing else identifies a person, because people can change their names and addresses.
 */
function findExternalId({ subject, claims }: AssertedIdentity, { correlationRule }: IdentityProvider_OIDC) {
  if (correlationRule !== CorrelationRule.OID_EQUALS_EXTERNAL_ID) return toKey(subject);
  return toKey(Object.hasOwn(claims, "oid") ? claims.oid : undefined);
}

// PostgreSQL has no NUL in texts, and half of a surrogate pair becomes another character on the way to it.
const UNSTORABLE = /[\0\p{Cs}]/u;

function toKey(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" && !UNSTORABLE.test(value) ? value : undefined;
}
