// What people tell of themselves; only they see and change it.
import { create, fromJson, type JsonObject, toJson } from "@bufbuild/protobuf";
import type { FieldMask } from "@bufbuild/protobuf/wkt";
import { type IdentityMetadata, IdentityMetadataSchema } from "#gen/chainguard/platform/iam/v2beta1/identities_pb.js";
import { defineResource } from "../../pipeline/resource/define.js";
import { patchOf } from "../../pipeline/resource/patch.js";
import { type FieldRule, isDescription } from "../../pipeline/resource/rules.js";
import type { IdentityRow } from "../../store/port.js";

const isFlag: FieldRule = () => undefined;

const identityMetadata = defineResource({
  noun: "identity metadata",
  type: "iam.chainguard.dev/IdentityMetadata",
  message: IdentityMetadataSchema,
  sort: [],
  mutable: {
    company: isDescription,
    updatesOptIn: isFlag,
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
    selfServe: isFlag,
  },
});

/** The metadata of an identity as version 2 shows it. */
export function metadataView(row: Pick<IdentityRow, "uid" | "name" | "metadata">): IdentityMetadata {
  const stored = fromJson(IdentityMetadataSchema, row.metadata as JsonObject, { ignoreUnknownFields: true });
  return create(IdentityMetadataSchema, { ...stored, uid: row.uid, name: row.name });
}

/** The metadata to store after a change; throws ApiError INVALID_ARGUMENT as every patch does. */
export function patchMetadata(stored: object, body: IdentityMetadata | undefined, mask: FieldMask | undefined): object {
  const before = metadataView({ uid: "", name: "", metadata: stored });
  const after = create(IdentityMetadataSchema, { ...before, ...patchOf(identityMetadata, body, mask, before) });
  return toJson(IdentityMetadataSchema, after) as JsonObject;
}
