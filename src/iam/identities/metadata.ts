// The metadata of an identity, which only its person sees and changes.
import { create, fromJson, type JsonObject, toJson } from "@bufbuild/protobuf";
import type { FieldMask } from "@bufbuild/protobuf/wkt";
import { type IdentityMetadata, IdentityMetadataSchema } from "#gen/chainguard/platform/iam/v2beta1/identities_pb.js";
import { defineMutableFields } from "../../pipeline/resource/define.js";
import { buildPatch } from "../../pipeline/resource/patch.js";
import { isAnything, isDescription } from "../../pipeline/resource/rules.js";
import type { IdentityRow } from "../../store/port.js";

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
  const before = metadataToProto({ uid: "", name: "", metadata: stored });
  const patch = buildPatch(identityMetadata, body, mask, before);
  if (Object.keys(patch).length === 0) return undefined;
  const after = create(IdentityMetadataSchema, { ...before, ...patch });
  return toJson(IdentityMetadataSchema, after) as JsonObject;
}
