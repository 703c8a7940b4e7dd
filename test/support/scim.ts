// SCIM settings of identity providers, straight in the store.
import { identityProviderKind, type ScimState } from "../../src/store/iam/identity-providers.js";
import type { Tx } from "../../src/store/transaction.js";

/** Stores a token of an identity provider, by the hash of no text, and returns the state of its SCIM settings. */
export async function insertScimToken(tx: Tx, uid: string, state: Partial<ScimState> = {}): Promise<ScimState> {
  const row = await tx.table(identityProviderKind).find(uid);
  if (row === undefined) throw new Error(`there is no identity provider ${uid}`);
  const scim = { ...row.scim, tokenHash: "0".repeat(64), previousHash: "", revoked: false, etag: "etag", ...state };
  await tx.table(identityProviderKind).replace({ ...row, scim });
  return scim;
}
