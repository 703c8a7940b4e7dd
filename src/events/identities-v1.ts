// Identities of the events package, version 1: the metadata of the caller's own identity, a view of version 2.
import { create } from "@bufbuild/protobuf";
import { FieldMaskSchema } from "@bufbuild/protobuf/wkt";
import {
  Identities,
  type IdentityMetadata,
  IdentityMetadataSchema,
  type IdentityMetadata_OnboardingQuestions as OnboardingQuestions,
} from "#gen/chainguard/platform/events/identities_pb.js";
import {
  type IdentityMetadata as IdentityMetadataV2,
  IdentityMetadataSchema as IdentityMetadataV2Schema,
} from "#gen/chainguard/platform/iam/v2beta1/identities_pb.js";
import { identities, metadataToProto, patchMetadata } from "../iam/identities/identity.js";
import { invalidArgument, unimplemented } from "../kernel/errors.js";
import { unavailableIdentitiesV1 } from "../kernel/unavailable-methods.js";
import { type Handlers, withOutcome } from "../pipeline/handlers.js";
import { serve } from "../pipeline/method-table.js";
import { renameErrorFields } from "../pipeline/operations.js";
import { defineFixedFields, requireUpdated, setByService } from "../pipeline/resource/fixed-fields.js";
import { getRow } from "../pipeline/resource/read.js";
import { identityKind } from "../store/iam/identities.js";

const responseNames = [
  "product",
  "jobTitle",
  "utmCampaign",
  "utmContent",
  "utmMedium",
  "utmSource",
  "utmTerm",
  "latestFormSubmitUrl",
  "latestInternalReferringUrl",
  "hubspotUtk",
  "selfServe",
] as const;
type Responses = Pick<OnboardingQuestions, (typeof responseNames)[number]>;

const fixed = defineFixedFields(IdentityMetadataSchema, {
  name: setByService(),
  givenName: setByService(),
  familyName: setByService(),
});

export function eventIdentitiesV1() {
  const handlers: Handlers<typeof Identities> = {
    // The method is unscoped: a caller with identity.create in any group could create an identity that no
    // organisation sees and only the operator could delete.
    create() {
      throw unimplemented(`Identities.Create: ${unavailableIdentitiesV1.create}`);
    },

    async updateMetadata(request, { tx, caller, startMs }) {
      const before = await getRow(tx, identities, caller.uid);
      const metadata = buildMetadata(before.metadata, request) ?? before.metadata;
      const row = (await tx.table(identityKind).update(caller.uid, { metadata }, startMs)) ?? before;
      // The response does not name its subject.
      const updated = create(IdentityMetadataSchema, metadataToProtoV1(metadataToProto(row)));
      return withOutcome(requireUpdated(fixed, request, updated), { subjectUid: caller.uid });
    },
  };
  // Metadata that only its person sees.
  return serve(Identities, handlers, { updateMetadata: { body: "none" } });
}

const names = Object.fromEntries([
  ["company", "onboardingQuestions.companyName"],
  ...responseNames.map((name) => [name, `onboardingQuestions.${name}`]),
]);

// The responses are replaced as a whole, or not at all where they are absent. Version 1 has no mask, so the flag is
// always set as sent: callers must be able to opt out.
function buildMetadata(stored: object, { onboardingQuestions: questions, updatesOptIn }: IdentityMetadata) {
  if (questions?.providers.length) {
    const field = "onboardingQuestions.providers";
    throw invalidArgument({ field, rule: "must be empty: the service keeps none" });
  }
  const responses = questions && { company: questions.companyName, ...copyResponses(questions) };
  const paths = ["updatesOptIn", ...Object.keys(responses ?? {})];
  try {
    return patchMetadata(
      stored,
      create(IdentityMetadataV2Schema, { updatesOptIn, ...responses }),
      create(FieldMaskSchema, { paths }),
    );
  } catch (error) {
    throw renameErrorFields(error, names);
  }
}

function metadataToProtoV1({ company, name, givenName, familyName, updatesOptIn, ...responses }: IdentityMetadataV2) {
  const onboardingQuestions = { companyName: company, ...copyResponses(responses) };
  return { onboardingQuestions, name, givenName, familyName, updatesOptIn };
}

function copyResponses(responses: Responses): Responses {
  return Object.fromEntries(responseNames.map((name) => [name, responses[name]])) as unknown as Responses;
}
