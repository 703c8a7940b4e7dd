// What is stored, row by row: plain values, the same on every database.
import type { CapabilitySet } from "../kernel/capability-set.js";

/** One row of the answer to "who is this and what may it do": the identity with one of its grants, or none. */
export interface AccessRow {
  readonly identityUid: string;
  /** Tokens issued before this epoch second are void. */
  readonly notBefore: number;
  /** The provider of an organisation that the identity came through; its grants elsewhere do not count. */
  readonly providerUid: string | null;
  readonly groupUid: string | null;
  readonly capabilities: CapabilitySet | null;
  /** Whether the binding that grants this is pending; null where there is no grant. */
  readonly pending: boolean | null;
}

/** What a mapping of a directory's group grants to those in it. */
export interface MappedGrant {
  readonly groupUid: string;
  readonly capabilities: CapabilitySet;
}

/** A group as stored. */
export interface GroupRow {
  readonly uid: string;
  /** Null for a root group. */
  readonly parentUid: string | null;
  readonly name: string;
  readonly description: string;
  readonly verified: boolean;
  /** The number of the OrgKind. */
  readonly kind: number;
  /** Of a root group: the quotas that the operator set for the organisation, by name. Empty for all others. */
  readonly resourceLimits: Readonly<Record<string, number>>;
  /** Who created a root group by a call; empty for one made on the host, and for all other groups. */
  readonly createdBy: string;
  readonly createTimeMs: number;
  readonly updateTimeMs: number;
}

/** The columns of a group that change after its creation. */
export type GroupPatch = Partial<Pick<GroupRow, "name" | "description" | "verified" | "kind" | "resourceLimits">>;

/** An identity as stored. */
export interface IdentityRow {
  readonly uid: string;
  /** Null for people and for identities Arbor itself names. */
  readonly groupUid: string | null;
  readonly name: string;
  readonly description: string;
  /** Of people: the login provider's issuer and subject. */
  readonly issuer: string;
  readonly subject: string;
  /** The e-mail address a trusted login provider confirmed, else empty. */
  readonly email: string;
  readonly emailUnverified: string;
  readonly company: string;
  /** Of people who came through an organisation's own provider: which one; null for all others. */
  readonly providerUid: string | null;
  /** The number of the RelationshipType; 0 for people. */
  readonly relation: number;
  /** How the identity is assumed, in the JSON of its message; empty for people. */
  readonly relationship: object;
  /** What a person told of themselves. */
  readonly metadata: object;
  /** Tokens issued before this epoch second are void. */
  readonly notBefore: number;
  readonly createTimeMs: number;
  readonly updateTimeMs: number;
  readonly lastSeenTimeMs: number;
}

/** The columns of an identity that change after its creation. */
export type IdentityPatch = Partial<
  Pick<
    IdentityRow,
    | "name"
    | "description"
    | "company"
    | "relation"
    | "relationship"
    | "metadata"
    | "email"
    | "emailUnverified"
    | "notBefore"
  >
>;

/** A role as stored. */
export interface RoleRow {
  readonly uid: string;
  /** Null for built-in roles. */
  readonly groupUid: string | null;
  readonly name: string;
  readonly description: string;
  readonly capabilities: CapabilitySet;
  readonly createTimeMs: number;
  readonly updateTimeMs: number;
}

/** The columns of a role that change after its creation. */
export type RolePatch = Partial<Pick<RoleRow, "name" | "description" | "capabilities">>;

/** A role binding as stored. */
export interface RoleBindingRow {
  readonly uid: string;
  readonly groupUid: string;
  readonly identityUid: string;
  readonly roleUid: string;
  /** Whether it came with the creation of its root group; such a one goes with the group. */
  readonly automatic: boolean;
  /** Whether the person it is for brought it about by accepting an invite. */
  readonly accepted: boolean;
  /**
   * Whether the person it is for has yet to accept it. It grants its role wherever a call names the group,
   * but adds nothing to lists over all groups.
   */
  readonly pending: boolean;
  readonly createTimeMs: number;
  readonly updateTimeMs: number;
}

/** A role binding with what its answers show of the things it joins; null where one is not there. */
export interface HydratedBinding extends RoleBindingRow {
  readonly groupName: string;
  readonly groupDescription: string;
  readonly roleName: string;
  readonly roleDescription: string;
  readonly identityName: string | null;
  readonly identityDescription: string | null;
  readonly identityIssuer: string | null;
  readonly identitySubject: string | null;
  readonly identityEmail: string | null;
  readonly identityRelationship: object | null;
}

/** The credentials by which a provider's directory may push people and groups. */
export interface ScimState {
  readonly enabled: boolean;
  /** Hashes of the token in use and of the one before it, while that is still good. */
  readonly tokenHash: string;
  readonly previousHash: string;
  /** Epoch milliseconds; absent: never. */
  readonly expireTimeMs?: number;
  readonly previousExpireTimeMs?: number;
  readonly revoked: boolean;
  readonly etag: string;
}

/** An identity provider as stored. */
export interface IdentityProviderRow {
  readonly uid: string;
  readonly groupUid: string;
  readonly name: string;
  readonly description: string;
  readonly defaultRole: string;
  /** The JSON of its OIDC message, without the secret. */
  readonly oidc: object;
  /** The client secret, sealed; empty where there is none. */
  readonly sealedSecret: string;
  readonly scim: ScimState;
  readonly createTimeMs: number;
  readonly updateTimeMs: number;
}

/** An account association as stored; its uid is that of its group. */
export interface AccountAssociationRow {
  readonly uid: string;
  readonly parentUid: string | null;
  readonly name: string;
  readonly description: string;
  /** The JSON of its providers' messages. */
  readonly accounts: object;
  readonly createTimeMs: number;
  readonly updateTimeMs: number;
}

/** A group invite as stored; of its code only a hash. */
export interface GroupInviteRow {
  readonly uid: string;
  readonly groupUid: string;
  readonly roleUid: string;
  readonly email: string;
  readonly singleUse: boolean;
  readonly keyId: string;
  readonly codeHash: string;
  /** Who made it; what they may grant is checked again when it is accepted. Empty: nobody known. */
  readonly createdBy: string;
  readonly expireTimeMs: number;
  readonly createTimeMs: number;
  /** 0 for invites from before this was kept. */
  readonly updateTimeMs: number;
}

/** A mapping of a directory's group to a role, as stored. */
export interface GroupMappingRow {
  readonly uid: string;
  readonly providerUid: string;
  readonly externalGroupId: string;
  readonly roleUid: string;
  readonly scope: string;
  readonly createTimeMs: number;
}

/** A subscription to events as stored. */
export interface SubscriptionRow {
  readonly uid: string;
  readonly groupUid: string;
  readonly sink: string;
  readonly createTimeMs: number;
  readonly updateTimeMs: number;
}

/** The acceptance of a document by a group, as stored. */
export interface TermsAcceptanceRow {
  readonly groupUid: string;
  readonly docId: string;
  readonly acceptedBy: string;
  readonly createTimeMs: number;
}
