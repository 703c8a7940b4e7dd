// Signing in: finds or registers the person that a login provider asserts.
import { SessionSchema } from "#gen/chainguard/platform/auth/auth_pb.js";
import { RoleBindingsService } from "#gen/chainguard/platform/iam/v2beta1/role_bindings_pb.js";
import { failedPrecondition, notFound, notPermitted, unauthenticated } from "../../kernel/errors.js";
import { MAX_MAPPINGS } from "../../pipeline/auth/api-token.js";
import type { BodyView } from "../../pipeline/body.js";
import type { GroupInviteRow } from "../../store/iam/group-invites.js";
import { groupMappingKind } from "../../store/iam/group-mappings.js";
import { type IdentityRow, identityKind } from "../../store/iam/identities.js";
import { findDefaultRole, identityProviderKind } from "../../store/iam/identity-providers.js";
import { scimUserKind } from "../../store/iam/scim-users.js";
import type { Tx } from "../../store/transaction.js";
import type { DirectoryContext } from "../directories/rights.js";
import { followLink } from "../directories/work.js";
import { findChosenName, identities } from "../identities/identity.js";
import { oidcFromJson } from "../identity-providers/identity-provider.js";
import { ensureAccepted } from "../role-bindings/create-binding.js";
import { acceptInvite, type Invitee, type InvitePreview, previewInvite, requireInvite } from "./accept-invite.js";
import { linkPerson, requireAdmitted } from "./directory-person.js";
import { findOwnerInvite } from "./owner-invite.js";
import { acceptBindingsAt } from "./pending-bindings.js";
import { type AssertedIdentity, derivePersonUid, parseEmail, parseName, register } from "./registration.js";

/** How bodies of the audit log show a registration: who may read the bindings of a group sees who joined it. */
export const sessionView = {
  message: SessionSchema,
  readers: [RoleBindingsService.method.listRoleBindings],
} as const satisfies BodyView;

/** A login, after the token of the provider was verified. */
export interface SignIn {
  readonly issuer: string;
  readonly subject: string;
  readonly claims: Readonly<Record<string, unknown>>;
  /** Whether claims may be missing because the provider could not be asked for them: what is stored of them stays. */
  readonly isPartial?: boolean;
  /** The organisation's provider it came through; undefined for login providers of the service. */
  readonly providerUid?: string | undefined;
  /** The code of an invite to accept. */
  readonly invite?: string | undefined;
  /** Whether to register a person who is not registered. */
  readonly register: boolean;
}

export interface SignInResult {
  readonly identityUid: string;
  /** The uids of the mappings that match the groups of the person's directory. */
  readonly mappings: readonly string[];
  /** The informative claims of tokens (docs/login.md). */
  readonly informative: Readonly<Record<string, unknown>>;
  /** The group of the accepted invite. */
  readonly group?: string;
}

/**
 * Finds the person that a provider asserts, or registers the person where that is allowed. People of an
 * organisation's provider are registered when they sign in, with the default role of the provider if it has one, and linked
 * with the person whom its directory has sent.
 *
 * @throws ApiError NOT_FOUND for a person who is not registered, PERMISSION_DENIED for the invite of another person and for
 * one whom the directory of the provider does not let sign in, UNAUTHENTICATED when the provider is gone, FAILED_PRECONDITION for too many mappings.
 */
export async function signIn(tx: Tx, login: SignIn, context: DirectoryContext): Promise<SignInResult> {
  const { nowMs, ids } = context;
  const asserted = await getAssertedIdentity(tx, login);
  const { provider } = asserted;
  const invite = await findInvite(tx, login, asserted, nowMs);
  let person = await tx.table(identityKind).find(derivePersonUid(asserted));
  const sent = await requireAdmitted(tx, asserted, person);
  if (person === undefined) {
    requireMayRegister(login, asserted, invite);
    person = await register(tx, asserted, nowMs);
    if (provider !== undefined) {
      const roleUid = findDefaultRole(provider);
      if (roleUid !== undefined) {
        await ensureAccepted(tx, provider.groupUid, { identityUid: person.uid, roleUid }, context);
      }
      await acceptBindingsAt(tx, person.uid, provider.groupUid, "consent");
      // Who was deleted here and not in the directory is linked still.
      if (sent === undefined) await followLink(tx, provider.uid, person.uid, context);
    }
  } else {
    person = await refreshPerson(tx, person, asserted, { nowMs, isPartial: login.isPartial === true });
  }
  if (sent !== undefined) await linkPerson(tx, sent, person.uid, context);
  if (invite !== undefined) await acceptInvite(tx, invite, person, { ids, nowMs });
  return {
    identityUid: person.uid,
    mappings: await findMappings(tx, asserted),
    informative: buildInformativeClaims(asserted, person),
    ...(invite && { group: invite.groupUid }),
  };
}

/**
 * Previews {@link signIn} without any change.
 *
 * @returns the invite that would be accepted; undefined where there is none
 * @throws ApiError as {@link signIn}
 */
export async function previewSignIn(tx: Tx, request: SignIn, nowMs: number): Promise<InvitePreview | undefined> {
  const asserted = await getAssertedIdentity(tx, request);
  const invite = await findInvite(tx, request, asserted, nowMs);
  const invitee = buildInvitee(asserted);
  const person = await tx.table(identityKind).find(invitee.uid);
  await requireAdmitted(tx, asserted, person);
  if (person === undefined) requireMayRegister(request, asserted, invite);
  return invite && previewInvite(tx, invite, invitee, nowMs);
}

// The invite of the code, or else the one of an organisation that awaits the person as its owner.
async function findInvite(
  tx: Tx,
  { invite }: SignIn,
  asserted: AssertedIdentity,
  nowMs: number,
): Promise<GroupInviteRow | undefined> {
  if (invite !== undefined) return requireInvite(tx, invite, nowMs);
  return findOwnerInvite(tx, buildInvitee(asserted), asserted.issuer, nowMs);
}

function buildInvitee(asserted: AssertedIdentity): Invitee {
  const { email } = parseEmail(asserted);
  return { uid: derivePersonUid(asserted), email, providerUid: asserted.provider?.uid ?? null };
}

function requireMayRegister(
  { register }: SignIn,
  asserted: AssertedIdentity,
  invite: GroupInviteRow | undefined,
): void {
  const { provider } = asserted;
  if (register || invite !== undefined || provider !== undefined) return;
  // Also where registration is open, because an invite gives rights as well.
  const rule = "account not found: you need an invite; ask an owner of your organisation for one";
  const missing = findMissingClaim(asserted);
  const hint = missing === undefined ? "" : `. Nobody can expect you by your e-mail address: ${HINTS[missing]}`;
  throw notFound(identities, "", `${rule}${hint}`);
}

const HINTS = {
  email: "your login provider states none (claim email)",
  email_verified: "your login provider has not confirmed it (claim email_verified)",
} as const;

/**
 * The claim that keeps a person from being known by an e-mail address; undefined for a person with a confirmed address,
 * and for one of an organisation's provider, whose addresses do not count.
 */
export function findMissingClaim(
  asserted: Pick<AssertedIdentity, "claims" | "provider">,
): "email" | "email_verified" | undefined {
  if (asserted.provider !== undefined) return undefined;
  const { email, emailUnverified } = parseEmail(asserted);
  if (email !== "") return undefined;
  return emailUnverified === "" ? "email" : "email_verified";
}

/**
 * Reads the registered person that a provider asserts, without any change.
 *
 * @throws ApiError PERMISSION_DENIED for a person who is not registered, else as {@link signIn}.
 */
export async function getKnownPerson(tx: Tx, login: Omit<SignIn, "invite" | "register">): Promise<SignInResult> {
  const asserted = await getAssertedIdentity(tx, login);
  const person = await tx.table(identityKind).find(derivePersonUid(asserted));
  await requireAdmitted(tx, asserted, person);
  // The login provider has confirmed who asks, so this says nothing about others.
  if (person === undefined) {
    const rule =
      asserted.provider === undefined ? "you have no account here, and need an invite" : "sign in with a browser first";
    throw notPermitted(`Identity not found: ${rule}`, "person_unknown");
  }
  return {
    identityUid: person.uid,
    mappings: await findMappings(tx, asserted),
    informative: buildInformativeClaims(asserted, person),
  };
}

/**
 * Reads the asserted person together with the provider as it is stored now.
 *
 * @throws ApiError UNAUTHENTICATED when the provider is gone or was changed to another issuer.
 */
export async function getAssertedIdentity(
  tx: Tx,
  { issuer, subject, claims, providerUid }: Omit<SignIn, "register">,
): Promise<AssertedIdentity> {
  if (providerUid === undefined) return { issuer, subject, claims };
  const provider = await tx.table(identityProviderKind).find(providerUid);
  // The provider may have been deleted, or its issuer changed, since the login began.
  if (provider === undefined) throw unauthenticated(undefined, "provider_unknown");
  if (oidcFromJson(provider.oidc).issuer !== issuer) throw unauthenticated(undefined, "token_issuer");
  return { issuer, subject, claims, provider };
}

async function refreshPerson(
  tx: Tx,
  person: IdentityRow,
  asserted: AssertedIdentity,
  { nowMs, isPartial }: { readonly nowMs: number; readonly isPartial: boolean },
): Promise<IdentityRow> {
  await tx.table(identityKind).updateLastSeen(person.uid, nowMs);
  const { email, emailUnverified } = isPartial && lacksEmail(asserted, person) ? person : parseEmail(asserted);
  // The name that the person has chosen, else that of the provider, else the one before.
  const name = findChosenName(person) || parseName(asserted) || person.name;
  if (name === person.name && email === person.email && emailUnverified === person.emailUnverified) return person;
  return (await tx.table(identityKind).update(person.uid, { name, email, emailUnverified }, nowMs)) ?? person;
}

// Without `email_verified` it is not known whether an address is confirmed, so it does not replace one that is.
function lacksEmail({ claims }: AssertedIdentity, { email }: IdentityRow): boolean {
  const { email: asserted = null, email_verified: verified = null } = claims;
  return asserted === null || (verified === null && email !== "");
}

// Once a directory sends people by SCIM, it says who is in its groups, and the groups of tokens count no more.
async function findMappings(tx: Tx, { provider, claims }: AssertedIdentity): Promise<string[]> {
  if (provider === undefined || (await tx.table(scimUserKind).hasAny(provider.uid))) return [];
  const { groupsClaim } = oidcFromJson(provider.oidc);
  const groupsValue = groupsClaim === "" || !Object.hasOwn(claims, groupsClaim) ? [] : claims[groupsClaim];
  const groups = new Set<unknown>(Array.isArray(groupsValue) ? groupsValue : [groupsValue]);
  if (groups.size === 0) return [];
  const found: string[] = [];
  for (const uid of await tx.table(groupMappingKind).findUidsWhere("providerUid", provider.uid)) {
    const mapping = await tx.table(groupMappingKind).find(uid);
    if (mapping !== undefined && groups.has(mapping.externalGroupId)) found.push(uid);
  }
  if (found.length <= MAX_MAPPINGS) return found.sort();
  throw failedPrecondition("TOO_MANY_MAPPINGS", `more than ${MAX_MAPPINGS} mappings apply to one person`);
}

// Informative claims are for readers of tokens. The service decides nothing by them.
function buildInformativeClaims(
  { issuer, subject, claims }: AssertedIdentity,
  { email, emailUnverified }: IdentityRow,
): object & {
  readonly [name: string]: unknown;
} {
  const address = email || emailUnverified;
  const upstream = ["name", "given_name", "family_name", "picture"].flatMap((name) => {
    const value = Object.hasOwn(claims, name) ? claims[name] : undefined;
    return typeof value === "string" && value.length <= 512 ? [[name, value] as const] : [];
  });
  return {
    ...(address !== "" && { email: address, email_verified: email !== "" }),
    act: { iss: issuer, sub: subject, ...copyAudience(claims), ...(address !== "" && { email: address }) },
    ...(upstream.length > 0 && { upstream: Object.fromEntries(upstream) }),
  };
}

function copyAudience({ aud }: Readonly<Record<string, unknown>>): { aud?: unknown } {
  return aud === undefined ? {} : { aud };
}
