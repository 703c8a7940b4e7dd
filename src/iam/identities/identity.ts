// The identity resource: its definition, how version 2 shows it, the built-in identity `anonymous`, and metadata.
import { create, fromJson, type JsonObject, toJson } from "@bufbuild/protobuf";
import type { FieldMask } from "@bufbuild/protobuf/wkt";
import { TrustService } from "#gen/arbor/trust/v1/trust_pb.js";
import { Identities } from "#gen/chainguard/platform/iam/identity_pb.js";
import { IdentitiesService as StableIdentitiesService } from "#gen/chainguard/platform/iam/v2/identities_pb.js";
import {
  IdentitiesService,
  type Identity,
  type IdentityMetadata,
  IdentityMetadataSchema,
  IdentitySchema,
} from "#gen/chainguard/platform/iam/v2beta1/identities_pb.js";
import { breakRule } from "../../kernel/errors.js";
import { ANONYMOUS_UID } from "../../kernel/ids.js";
import { timestampOf } from "../../kernel/time.js";
import { areStaticKeys, isAwsIdentity, isClaimMatch } from "../../kernel/trust-rules.js";
import type { BodyView } from "../../pipeline/body.js";
import { defineMutableFields, defineResource } from "../../pipeline/resource/define.js";
import { countRows } from "../../pipeline/resource/delete.js";
import { immutable } from "../../pipeline/resource/fixed-fields.js";
import { buildPatch } from "../../pipeline/resource/patch.js";
import { createsInScope } from "../../pipeline/resource/quota.js";
import { type FieldRule, isAnything, isDescription, isName, isPrintable } from "../../pipeline/resource/rules.js";
import { type IdentityRow, identityKind } from "../../store/iam/identities.js";
import type { Tx } from "../../store/transaction.js";
import { isServicePrincipal, relationshipFromJson } from "./relationship.js";

const MAX_PERSON_NAME = 255;

// Empty for the name that the login provider states.
const isPersonName: FieldRule = (value, field) => {
  if (typeof value !== "string" || !isPrintable(value)) return breakRule(field, "must not contain control characters");
  if (value !== value.trim()) return breakRule(field, "must not begin or end with a blank");
  return [...value].length > MAX_PERSON_NAME
    ? breakRule(field, `must be at most ${MAX_PERSON_NAME} characters`)
    : undefined;
};

export const identities = defineResource({
  displayName: "identity",
  type: "iam.chainguard.dev/Identity",
  plural: "identities",
  message: IdentitySchema,
  kind: identityKind,
  parent: {
    type: "iam.chainguard.dev/Group",
    onDelete: { restrict: (tx, uid) => countRows(tx.table(identityKind), "groupUid", uid) },
  },
  createdBy: [
    createsInScope(IdentitiesService.method.createIdentity),
    createsInScope(Identities.method.create),
    createsInScope(TrustService.method.createIdentity),
  ],
  stable: StableIdentitiesService,
  filters: { relationshipType: { column: "relation" } },
  mutable: {
    name: isName,
    description: isDescription,
    company: isDescription,
    claimMatch: isClaimMatch,
    staticKeys: areStaticKeys,
    awsIdentity: isAwsIdentity,
    servicePrincipal: isServicePrincipal,
  },
});

/** How bodies of the audit log show an identity. */
export const identityView = {
  message: IdentitySchema,
  readers: [IdentitiesService.method.listIdentities],
} as const satisfies BodyView;

/** Converts a stored identity to version 2. */
export function identityToProto(row: IdentityRow): Identity {
  return create(IdentitySchema, {
    uid: row.uid,
    name: row.name,
    description: row.description,
    email: row.email,
    emailUnverified: row.emailUnverified,
    company: row.company,
    lastSeenTime: timestampOf(row.lastSeenTimeMs),
    createTime: timestampOf(row.createTimeMs),
    updateTime: timestampOf(row.updateTimeMs),
    relationship: relationshipFromJson(row.relationship),
  });
}

/** Formats the name of an identity for the audit log, for handlers that delete their caller; else the store reads it. */
export function formatActorName({ name, email }: IdentityRow): string {
  return name || email;
}

/**
 * Builds the row of an identity that belongs to no organisation: a person, or one that Arbor itself defines.
 *
 * @param nowMs epoch milliseconds, of its creation and of its last use
 */
export function buildStandaloneIdentity(
  nowMs: number,
  fields: Pick<IdentityRow, "uid" | "name"> & Partial<IdentityRow>,
): IdentityRow {
  return {
    groupUid: null,
    description: "",
    issuer: "",
    subject: "",
    email: "",
    emailUnverified: "",
    company: "",
    providerUid: null,
    relation: 0,
    relationship: {},
    conditions: [],
    metadata: {},
    // The uid of a person follows from issuer and subject, so a deleted one may have had it. Tokens from before stay
    // revoked.
    notBefore: fields.subject === undefined || fields.subject === "" ? 0 : Math.floor(nowMs / 1000),
    revokeTimeMs: 0,
    createTimeMs: nowMs,
    updateTimeMs: nowMs,
    lastSeenTimeMs: nowMs,
    deleteTimeMs: null,
    deactivateTimeMs: null,
    ...fields,
  };
}

/** Whether an identity outside of groups has tokens from the host of the service alone, and no login provider knows it. */
export function isHostIdentity({ uid, issuer }: Pick<IdentityRow, "uid" | "issuer">): boolean {
  return !uid.includes("/") && issuer === "";
}

/** Makes sure that the identity `anonymous` exists. It has no relationship, so nobody can assume it. */
export async function seedAnonymous(tx: Tx, nowMs: number): Promise<void> {
  if ((await tx.table(identityKind).find(ANONYMOUS_UID)) !== undefined) return;
  const description = "Everybody, without credentials (built-in)";
  await tx
    .table(identityKind)
    .insert(buildStandaloneIdentity(nowMs, { uid: ANONYMOUS_UID, name: "anonymous", description }));
}

/**
 * What people change of their own identity. Their name is not that of a resource, so it may have any letters. The others
 * are those of identities that workloads assume.
 */
export const ownIdentity = defineMutableFields({
  displayName: "identity",
  type: identities.type,
  message: IdentitySchema,
  mutable: { name: isPersonName },
  fixed: Object.fromEntries(
    ["description", "company", "claimMatch", "staticKeys", "awsIdentity", "servicePrincipal"].map((field) => [
      field,
      immutable("people change their name alone"),
    ]),
  ),
});

/** The name that a person has chosen; empty where the person goes by that of the login provider. */
export function findChosenName({ metadata }: Pick<IdentityRow, "metadata">): string {
  return fromJson(IdentityMetadataSchema, metadata as JsonObject, { ignoreUnknownFields: true }).name;
}

/**
 * Builds what to store of a person who chooses a name. It is kept with the metadata, so that a login does not replace it.
 *
 * @param name empty to go by the name of the login provider again, from the next login on
 */
export function chooseName(
  { metadata, name: before }: IdentityRow,
  name: string,
): Pick<IdentityRow, "name" | "metadata"> {
  const stored = fromJson(IdentityMetadataSchema, metadata as JsonObject, { ignoreUnknownFields: true });
  const after = create(IdentityMetadataSchema, { ...stored, name });
  return { name: name || before, metadata: toJson(IdentityMetadataSchema, after) as JsonObject };
}

// The metadata of an identity, which only its person sees and changes.
const identityMetadata = defineMutableFields({
  displayName: "identity metadata",
  type: "iam.chainguard.dev/IdentityMetadata",
  message: IdentityMetadataSchema,
  mutable: {
    company: isDescription,
    updatesOptIn: isAnything,
    product: isDescription,
    jobTitle: isDescription,
    utmCampaign: isDescription,
    utmContent: isDescription,
    utmMedium: isDescription,
    utmSource: isDescription,
    utmTerm: isDescription,
    latestFormSubmitUrl: isDescription,
    latestInternalReferringUrl: isDescription,
    hubspotUtk: isDescription,
    selfServe: isAnything,
  },
});

/** Converts the metadata of an identity to version 2. */
export function metadataToProto(row: Pick<IdentityRow, "uid" | "name" | "metadata">): IdentityMetadata {
  const stored = fromJson(IdentityMetadataSchema, row.metadata as JsonObject, { ignoreUnknownFields: true });
  return create(IdentityMetadataSchema, { ...stored, uid: row.uid, name: row.name });
}

/**
 * Builds the metadata to store after a change; undefined where the request names no field. Throws ApiError
 * INVALID_ARGUMENT as every patch does.
 */
export function patchMetadata(
  stored: object,
  body: IdentityMetadata | undefined,
  mask: FieldMask | undefined,
): object | undefined {
  const chosen = findChosenName({ metadata: stored });
  const before = metadataToProto({ uid: "", name: chosen, metadata: stored });
  const patch = buildPatch(identityMetadata, body, mask, before);
  if (Object.keys(patch).length === 0) return undefined;
  const after = create(IdentityMetadataSchema, { ...before, ...patch });
  return toJson(IdentityMetadataSchema, after) as JsonObject;
}
