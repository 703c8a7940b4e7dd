// Identities of the events package, version 1: what callers tell of themselves,
// a view of the same in version 2.
import { create } from "@bufbuild/protobuf";
import { FieldMaskSchema } from "@bufbuild/protobuf/wkt";
import {
  Identities,
  type IdentityMetadata,
  type IdentityMetadata_OnboardingQuestions as OnboardingQuestions,
} from "#gen/chainguard/platform/events/identities_pb.js";
import {
  type IdentityMetadata as IdentityMetadataV2,
  IdentityMetadataSchema as IdentityMetadataV2Schema,
} from "#gen/chainguard/platform/iam/v2beta1/identities_pb.js";
import { identities } from "../iam/identities/identity.js";
import { metadataView, patchMetadata } from "../iam/identities/metadata.js";
import { invalidArgument, notFound, unimplemented } from "../kernel/errors.js";
import { serve, withOutcome } from "../pipeline/method-table.js";
import { renameErrorFields } from "../pipeline/operations.js";

const answerNames = [
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
type Answers = Pick<OnboardingQuestions, (typeof answerNames)[number]>;

/** Identities, ready to be served. */
export function eventIdentitiesV1() {
  return serve(Identities, {
    // It is unscoped: whoever holds identity.create in any group whatever could have an identity for the
    // tokens of any issuer, which no organisation sees and nobody but the operator could take away.
    create() {
      throw unimplemented("Identities.Create: no identities outside of groups are created; create one in a group");
    },

    async updateMetadata(sent, { tx, caller, startMs }) {
      const before = await tx.identities.get(caller.uid);
      if (before === undefined) throw notFound(identities, caller.uid);
      const metadata = changed(before.metadata, sent);
      const row = (await tx.identities.update(caller.uid, { metadata }, startMs)) ?? before;
      return withOutcome(metadataV1(metadataView(row)), { subjectUid: caller.uid });
    },
  });
}

const names = Object.fromEntries([
  ["company", "onboardingQuestions.companyName"],
  ...answerNames.map((name) => [name, `onboardingQuestions.${name}`]),
]);

// The answers are sent as a whole or not at all. There is no mask to say that a flag is absent, and who
// wants no news has to be able to say so: it is always as sent.
function changed(stored: object, { onboardingQuestions: questions, updatesOptIn }: IdentityMetadata): object {
  if (questions?.providers.length) {
    const field = "onboardingQuestions.providers";
    throw invalidArgument({ field, description: `${field} must be empty: the service keeps none` });
  }
  const told = questions && { company: questions.companyName, ...answersOf(questions) };
  const paths = ["updatesOptIn", ...Object.keys(told ?? {})];
  try {
    return patchMetadata(
      stored,
      create(IdentityMetadataV2Schema, { updatesOptIn, ...told }),
      create(FieldMaskSchema, { paths }),
    );
  } catch (error) {
    throw renameErrorFields(error, names);
  }
}

function metadataV1({ company, name, givenName, familyName, updatesOptIn, ...told }: IdentityMetadataV2) {
  const onboardingQuestions = { companyName: company, ...answersOf(told) };
  return { onboardingQuestions, name, givenName, familyName, updatesOptIn };
}

function answersOf(told: Answers): Answers {
  return Object.fromEntries(answerNames.map((name) => [name, told[name]])) as unknown as Answers;
}
