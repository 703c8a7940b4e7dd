// People: how they become known, and how they are forgotten.
import { invalidArgument, notFound } from "../../kernel/errors.js";
import { personUid, providerPersonUid } from "../../kernel/ids.js";
import { rootOf } from "../../kernel/uidp.js";
import type { IdentityProviderRow, IdentityRow, Tx } from "../../store/port.js";
import { identities } from "../identities/identity.js";
import { requireOwner } from "../rights.js";

/** What a provider says of somebody who signed in; its token was verified before. */
export interface Vouched {
  readonly issuer: string;
  readonly subject: string;
  readonly claims: Readonly<Record<string, unknown>>;
  /** The organisation's provider it came through; undefined for login providers of the service. */
  readonly provider?: IdentityProviderRow | undefined;
}

/** The uid of the person, known or not. */
export function uidOf({
  issuer,
  subject,
  provider,
}: Pick<Vouched, "issuer" | "subject"> & { readonly provider?: { readonly uid: string } | undefined }): string {
  return provider === undefined ? personUid(issuer, subject) : providerPersonUid(provider.uid, issuer, subject);
}

/** What to store of the person's e-mail address: only login providers of the service are believed. */
export function emailOf({ claims, provider }: Vouched): Pick<IdentityRow, "email" | "emailUnverified"> {
  const email = typeof claims.email === "string" && claims.email.length <= 254 ? claims.email : "";
  const confirmed = provider === undefined && claims.email_verified === true;
  return confirmed ? { email, emailUnverified: "" } : { email: "", emailUnverified: email };
}

/** Stores a person who is new. */
export async function register(tx: Tx, vouched: Vouched, nowMs: number): Promise<IdentityRow> {
  const { issuer, subject, claims, provider } = vouched;
  const row: IdentityRow = {
    uid: uidOf(vouched),
    groupUid: null,
    name: typeof claims.name === "string" ? claims.name.slice(0, 255) : "",
    description: "",
    issuer,
    subject,
    ...emailOf(vouched),
    company: "",
    providerUid: provider?.uid ?? null,
    relation: 0,
    relationship: {},
    metadata: {},
    // The uid is that of a person who was here before and left; their tokens stay void.
    notBefore: Math.floor(nowMs / 1000),
    createTimeMs: nowMs,
    updateTimeMs: nowMs,
    lastSeenTimeMs: nowMs,
  };
  await tx.identities.insert(row);
  return row;
}

/**
 * Deletes a person's own identity with everything bound to it.
 *
 * @throws ApiError INVALID_ARGUMENT for an identity that is no person, FAILED_PRECONDITION where an
 * organisation would be left without an owner.
 */
export async function deletePerson(tx: Tx, uid: string): Promise<void> {
  if (uid.includes("/")) {
    throw invalidArgument({ field: "id", description: "id must be the caller's own identity as a person" });
  }
  if ((await tx.identities.get(uid)) === undefined) throw notFound(identities, uid);
  await forget(tx, uid);
}

/** Deletes the people who came through a provider, as when it is deleted. */
export async function deletePeopleOf(tx: Tx, providerUid: string): Promise<void> {
  for (;;) {
    const uids = await tx.identities.ofProvider(providerUid, BATCH);
    for (const uid of uids) await forget(tx, uid);
    if (uids.length < BATCH) return;
  }
}

const BATCH = 500;

async function forget(tx: Tx, uid: string): Promise<void> {
  const bindings = await tx.roleBindings.ofIdentity(uid);
  for (const binding of bindings) await tx.roleBindings.delete(binding.uid);
  await tx.refreshTokens.deleteOf(uid);
  await tx.identities.delete(uid);
  const roots = new Set(bindings.map(({ groupUid }) => rootOf(groupUid)));
  for (const root of roots) await requireOwner(tx, root);
}
