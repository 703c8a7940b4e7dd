// People: their registration and their deletion. A person is an identity that belongs to no group. Its uid is a hash of
// issuer and subject, so it is known before the person registers, and is the same after a deletion and a new registration.
import { failedPrecondition, invalidArgument } from "../../kernel/errors.js";
import { personUid, providerPersonUid } from "../../kernel/ids.js";
import { getRow } from "../../pipeline/resource/read.js";
import { isPrintable } from "../../pipeline/resource/rules.js";
import { type IdentityRow, identityKind } from "../../store/iam/identities.js";
import type { IdentityProviderRow } from "../../store/iam/identity-providers.js";
import { scimUserKind } from "../../store/iam/scim-users.js";
import type { Tx } from "../../store/transaction.js";
import { beginDeletion, requireNotInDeletion } from "../identities/deletion.js";
import { buildStandaloneIdentity, identities } from "../identities/identity.js";

/** The longest name of a person, in characters. */
const MAX_NAME = 255;

/** The person that a login provider asserts in a verified token. */
export interface AssertedIdentity {
  readonly issuer: string;
  readonly subject: string;
  readonly claims: Readonly<Record<string, unknown>>;
  /** The organisation's provider it came through; undefined for login providers of the service. */
  readonly provider?: IdentityProviderRow | undefined;
}

/** Computes the uid of a person, registered or not. */
export function derivePersonUid({
  issuer,
  subject,
  provider,
}: Pick<AssertedIdentity, "issuer" | "subject"> & {
  readonly provider?: { readonly uid: string } | undefined;
}): string {
  return provider === undefined ? personUid(issuer, subject) : providerPersonUid(provider.uid, issuer, subject);
}

/** Reads the e-mail address of a person. Only login providers of the service can confirm one. */
export function parseEmail({
  claims,
  provider,
}: Pick<AssertedIdentity, "claims" | "provider">): Pick<IdentityRow, "email" | "emailUnverified"> {
  const isAddress = typeof claims.email === "string" && claims.email.length <= 254 && isPrintable(claims.email);
  const email = isAddress ? String(claims.email) : "";
  const confirmed = provider === undefined && claims.email_verified === true;
  return confirmed ? { email, emailUnverified: "" } : { email: "", emailUnverified: email };
}

/** Reads the name of a person: one line of at most 255 characters; empty where the provider states none. */
export function parseName({ claims }: Pick<AssertedIdentity, "claims">): string {
  if (typeof claims.name !== "string") return "";
  const printable = [...claims.name].filter(isPrintable).join("").trim();
  return [...printable].slice(0, MAX_NAME).join("");
}

/**
 * Stores a new person, without any rights: `signIn` (sign-in.ts) decides whether somebody may register, and binds roles.
 *
 * @throws ApiError UNAVAILABLE while the person is being deleted
 */
export async function register(tx: Tx, asserted: AssertedIdentity, nowMs: number): Promise<IdentityRow> {
  const { issuer, subject, provider } = asserted;
  const row = buildStandaloneIdentity(nowMs, {
    uid: derivePersonUid(asserted),
    name: parseName(asserted),
    ...{ issuer, subject, ...parseEmail(asserted), providerUid: provider?.uid ?? null },
  });
  await requireNotInDeletion(tx, row.uid, nowMs);
  await tx.table(identityKind).insert(row);
  return row;
}

/**
 * Deletes the identity of a person with all of its role bindings, or takes its rights away where that is a long work.
 *
 * @returns the row, and whether it is deleted completely; otherwise `finishDeletion` continues
 * @throws ApiError INVALID_ARGUMENT for an identity that is not a person, FAILED_PRECONDITION for a person whom a directory
 * manages, or where an organisation would be left without an owner.
 */
export async function deletePerson(
  tx: Tx,
  uid: string,
  nowMs: number,
): Promise<{ readonly person: IdentityRow; readonly isDeleted: boolean }> {
  if (uid.includes("/")) {
    throw invalidArgument({ field: "id", rule: "must be the caller's own identity as a person" });
  }
  const person = await getRow(tx, identities, uid);
  await requireNotInDirectory(tx, uid);
  return { person, isDeleted: await beginDeletion(tx, uid, nowMs) };
}

// Only a directory deletes the people whom it has sent.
async function requireNotInDirectory(tx: Tx, identityUid: string): Promise<void> {
  const row = await tx.table(scimUserKind).findByIdentity(identityUid);
  if (row === undefined) return;
  const rule = `the directory of identity provider ${row.providerUid} manages this person: it is deleted there`;
  throw failedPrecondition("PERSON_MANAGED", `cannot delete identity ${identityUid}: ${rule}`);
}
