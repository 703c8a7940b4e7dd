// People: their registration and their deletion.
import { invalidArgument } from "../../kernel/errors.js";
import { personUid, providerPersonUid } from "../../kernel/ids.js";
import { rootOf } from "../../kernel/uidp.js";
import { getRow } from "../../pipeline/resource/read.js";
import type { IdentityProviderRow, IdentityRow, Tx } from "../../store/port.js";
import { buildStandaloneIdentity, identities } from "../identities/identity.js";
import { requireOwner } from "../rights.js";

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
export function parseEmail({ claims, provider }: AssertedIdentity): Pick<IdentityRow, "email" | "emailUnverified"> {
  const email = typeof claims.email === "string" && claims.email.length <= 254 ? claims.email : "";
  const confirmed = provider === undefined && claims.email_verified === true;
  return confirmed ? { email, emailUnverified: "" } : { email: "", emailUnverified: email };
}

/** Stores a new person. */
export async function register(tx: Tx, asserted: AssertedIdentity, nowMs: number): Promise<IdentityRow> {
  const { issuer, subject, claims, provider } = asserted;
  const row = buildStandaloneIdentity(nowMs, {
    uid: derivePersonUid(asserted),
    name: typeof claims.name === "string" ? claims.name.slice(0, 255) : "",
    ...{ issuer, subject, ...parseEmail(asserted), providerUid: provider?.uid ?? null },
  });
  await tx.identities.insert(row);
  return row;
}

/**
 * Deletes the identity of a person with all of its role bindings. Resolves to the deleted row.
 *
 * @throws ApiError INVALID_ARGUMENT for an identity that is not a person, FAILED_PRECONDITION where an
 * organisation would be left without an owner.
 */
export async function deletePerson(tx: Tx, uid: string): Promise<IdentityRow> {
  if (uid.includes("/")) {
    throw invalidArgument({ field: "id", description: "id must be the caller's own identity as a person" });
  }
  const person = await getRow(tx, identities, uid);
  await deleteIdentity(tx, uid);
  return person;
}

/** Deletes the people of a provider, before the provider is deleted. */
export async function deletePeopleOf(tx: Tx, providerUid: string): Promise<void> {
  for (;;) {
    const uids = await tx.identities.findByProvider(providerUid, BATCH);
    for (const uid of uids) await deleteIdentity(tx, uid);
    if (uids.length < BATCH) return;
  }
}

const BATCH = 500;

async function deleteIdentity(tx: Tx, uid: string): Promise<void> {
  const bindings = await tx.roleBindings.findByIdentity(uid);
  for (const binding of bindings) await tx.roleBindings.delete(binding.uid);
  await tx.refreshTokens.deleteOf(uid);
  await tx.identities.delete(uid);
  const roots = new Set(bindings.map(({ groupUid }) => rootOf(groupUid)));
  for (const root of roots) await requireOwner(tx, root);
}
