// Signing in: who a provider vouches for, as somebody the service knows.

import { failedPrecondition, notFound, permissionDenied, unauthenticated } from "../../kernel/errors.js";
import type { Ids } from "../../kernel/ids.js";
import { MAX_MAPPINGS } from "../../pipeline/auth/api-token.js";
import type { IdentityRow, Tx } from "../../store/port.js";
import { identities } from "../identities/identity.js";
import { oidcFromJson } from "../identity-providers/identity-provider.js";
import { insertBinding } from "../role-bindings/new-binding.js";
import { acceptInvite, type Invitee, requireInvite } from "./accept-invite.js";
import { acceptBindingsAt } from "./pending-bindings.js";
import { type InvitePreview, previewInvite } from "./preview-invite.js";
import { emailOf, register, uidOf, type Vouched } from "./registration.js";

/** Somebody who signs in. */
export interface SignIn {
  readonly issuer: string;
  readonly subject: string;
  readonly claims: Readonly<Record<string, unknown>>;
  /** The organisation's provider it came through; undefined for login providers of the service. */
  readonly providerUid?: string | undefined;
  /** The code of an invite to accept. */
  readonly invite?: string | undefined;
  /** Make the person known who is not. */
  readonly register: boolean;
}

/** Who signed in. */
export interface SignedIn {
  readonly identityUid: string;
  /** The mappings that the groups of the person's directory satisfy. */
  readonly mappings: readonly string[];
  /** What tokens tell of the person (docs/login.md). */
  readonly informative: Readonly<Record<string, unknown>>;
  /** The group of the invite that was accepted. */
  readonly group?: string;
}

/**
 * Finds, or where it is allowed makes, the person whom a provider vouches for. People of an
 * organisation's provider become known by signing in, with the provider's default role.
 *
 * @throws ApiError NOT_FOUND for somebody unknown, PERMISSION_DENIED for an invite that is not theirs,
 * UNAUTHENTICATED when the provider is gone, FAILED_PRECONDITION for too many mappings.
 */
export async function signIn(
  tx: Tx,
  asked: SignIn,
  context: { readonly ids: Ids; readonly nowMs: number },
): Promise<SignedIn> {
  const { nowMs, ids } = context;
  const vouched = await assertedBy(tx, asked);
  const { provider } = vouched;
  const invite = asked.invite === undefined ? undefined : await requireInvite(tx, asked.invite, nowMs);
  let person = await tx.identities.get(uidOf(vouched));
  if (person === undefined) {
    requireMayRegister(asked, vouched);
    person = await register(tx, vouched, nowMs);
    if (provider !== undefined) {
      const joined = { identityUid: person.uid, roleUid: provider.defaultRole };
      await insertBinding(tx, provider.groupUid, joined, context, { accepted: true });
      await acceptBindingsAt(tx, person.uid, provider.groupUid);
    }
  } else {
    person = await refreshed(tx, person, vouched, nowMs);
  }
  if (invite !== undefined) await acceptInvite(tx, invite, person, { ids, nowMs });
  return {
    identityUid: person.uid,
    mappings: await mappingsOf(tx, vouched),
    informative: informativeOf(vouched, person),
    ...(invite && { group: invite.groupUid }),
  };
}

/**
 * What {@link signIn} would do, without any change.
 *
 * @returns the invite that would be accepted; undefined where there is none
 * @throws ApiError as {@link signIn}
 */
export async function previewSignIn(tx: Tx, request: SignIn, nowMs: number): Promise<InvitePreview | undefined> {
  const vouched = await assertedBy(tx, request);
  const uid = uidOf(vouched);
  if ((await tx.identities.get(uid)) === undefined) requireMayRegister(request, vouched);
  if (request.invite === undefined) return undefined;
  const invitee: Invitee = { uid, email: emailOf(vouched).email, providerUid: vouched.provider?.uid ?? null };
  return previewInvite(tx, request.invite, invitee, nowMs);
}

function requireMayRegister({ register, invite }: SignIn, { provider }: Vouched): void {
  if (register || invite !== undefined || provider !== undefined) return;
  throw notFound(identities, "", "account not found: it needs an invite");
}

/**
 * The person whom a provider vouches for, without any change.
 *
 * @throws ApiError PERMISSION_DENIED for somebody unknown, else as {@link signIn}.
 */
export async function knownPerson(tx: Tx, asked: Omit<SignIn, "invite" | "register">): Promise<SignedIn> {
  const vouched = await assertedBy(tx, asked);
  const person = await tx.identities.get(uidOf(vouched));
  if (person === undefined) throw permissionDenied("Identity not found");
  return {
    identityUid: person.uid,
    mappings: await mappingsOf(tx, vouched),
    informative: informativeOf(vouched, person),
  };
}

/**
 * Who signs in, with the provider as it is stored now.
 *
 * @throws ApiError UNAUTHENTICATED when the provider is gone or was changed to another issuer.
 */
export async function assertedBy(
  tx: Tx,
  { issuer, subject, claims, providerUid }: Omit<SignIn, "register">,
): Promise<Vouched> {
  if (providerUid === undefined) return { issuer, subject, claims };
  const provider = await tx.identityProviders.get(providerUid);
  // It may have been deleted, or pointed elsewhere, since the person was sent there.
  if (provider === undefined || oidcFromJson(provider.oidc).issuer !== issuer) throw unauthenticated();
  return { issuer, subject, claims, provider };
}

async function refreshed(tx: Tx, person: IdentityRow, vouched: Vouched, nowMs: number): Promise<IdentityRow> {
  await tx.identities.updateLastSeen(person.uid, nowMs);
  const { email, emailUnverified } = emailOf(vouched);
  if (email === person.email && emailUnverified === person.emailUnverified) return person;
  return (await tx.identities.update(person.uid, { email, emailUnverified }, nowMs)) ?? person;
}

async function mappingsOf(tx: Tx, { provider, claims }: Vouched): Promise<string[]> {
  if (provider === undefined) return [];
  const { groupsClaim } = oidcFromJson(provider.oidc);
  const told = groupsClaim === "" || !Object.hasOwn(claims, groupsClaim) ? [] : claims[groupsClaim];
  const groups = new Set<unknown>(Array.isArray(told) ? told : [told]);
  if (groups.size === 0) return [];
  const found: string[] = [];
  for (const uid of await tx.groupMappings.uidsWhere("providerUid", provider.uid)) {
    const mapping = await tx.groupMappings.get(uid);
    if (mapping !== undefined && groups.has(mapping.externalGroupId)) found.push(uid);
  }
  if (found.length <= MAX_MAPPINGS) return found.sort();
  throw failedPrecondition("TOO_MANY_MAPPINGS", `more than ${MAX_MAPPINGS} mappings apply to one person`);
}

// For those who read tokens; nothing here decides on it.
function informativeOf(
  { issuer, subject, claims }: Vouched,
  { email, emailUnverified }: IdentityRow,
): object & {
  readonly [name: string]: unknown;
} {
  const address = email || emailUnverified;
  const told = ["name", "given_name", "family_name", "picture"].flatMap((name) => {
    const value = Object.hasOwn(claims, name) ? claims[name] : undefined;
    return typeof value === "string" && value.length <= 512 ? [[name, value] as const] : [];
  });
  return {
    ...(address !== "" && { email: address, email_verified: email !== "" }),
    act: { iss: issuer, sub: subject, ...audienceOf(claims), ...(address !== "" && { email: address }) },
    ...(told.length > 0 && { upstream: Object.fromEntries(told) }),
  };
}

function audienceOf({ aud }: Readonly<Record<string, unknown>>): { aud?: unknown } {
  return aud === undefined ? {} : { aud };
}
