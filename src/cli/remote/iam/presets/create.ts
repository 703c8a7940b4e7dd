// `arbor iam identities create` with the flags of a preset: one call, which creates the identity with its conditions.
import { create, fromJson, type JsonObject, type JsonValue, toJson } from "@bufbuild/protobuf";
import {
  ConditionSchema,
  CreateIdentityRequestSchema,
  GetConditionsRequestSchema,
  TrustService,
} from "#gen/arbor/trust/v1/trust_pb.js";
import {
  type CreateIdentityRequest,
  IdentitiesService,
  type Identity,
  Identity_ClaimMatchSchema,
  IdentitySchema,
} from "#gen/chainguard/platform/iam/v2beta1/identities_pb.js";
import { formatCondition } from "../../../../kernel/claim-condition.js";
import { invalidFlag } from "../../../errors.js";
import { formatResponse } from "../../../output/format.js";
import { withSession } from "../../session.js";
import type { FieldFlag } from "../field-flags.js";
import { omitUnseen } from "../last-seen.js";
import { buildRequest } from "../request.js";
import { findResourceField, type ResourceCommand } from "../resource-commands.js";
import { createWarning, type DetailRow, type OneFlags, toDetailRows } from "../run.js";
import type { Preset, Trust } from "./preset.js";
import type { ChosenPreset } from "./presets.js";

/**
 * Creates an identity that the tokens of a platform assume, and prints it with what it accepts.
 *
 * @param flags those of the fields of an identity
 * @throws CommandError INVALID_ARGUMENT for the first wrong flag; the error of the platform or of the service
 */
export async function createFromPreset(
  resource: ResourceCommand,
  { preset, given: values }: ChosenPreset,
  flags: readonly FieldFlag[],
  given: OneFlags,
): Promise<void> {
  const method = IdentitiesService.method.createIdentity;
  const field = findResourceField(resource, method);
  const built = await buildRequest(method.input, flags, given, field);
  const request = built.request as CreateIdentityRequest;
  const identity = request.identity ?? create(IdentitySchema);
  request.identity = identity;
  const trust = await preset.findTrust(values);
  setTrust(identity, trust, preset);
  identity.name ||= toName(trust.name);
  await withSession(given, async (session) => {
    await session.names.resolve(method, request);
    const { parent } = request;
    const conditions = trust.conditions.map((condition) => create(ConditionSchema, condition));
    const trusting = create(CreateIdentityRequestSchema, { parent, identity, conditions });
    const { call, output } = session;
    const print = async (found: JsonObject, stored: JsonValue, accepted: string) => {
      const rows = (): DetailRow[] => [
        ...toDetailRows(IdentitySchema, omitUnseen(found)),
        ...(stored as JsonObject[]).map(
          (one): DetailRow => ["condition", formatCondition(fromJson(ConditionSchema, one))],
        ),
        ...(accepted === "" ? [] : [["accepts", accepted] as const]),
      ];
      // The members of an identity, as without a preset.
      await output.write(formatResponse(given.output, { ...found, conditions: stored }, rows, output.terminal));
    };
    const createOne = async () => {
      const response = await call(TrustService.method.createIdentity, trusting);
      await print((response.identity ?? {}) as JsonObject, response.conditions ?? [], trust.accepted);
    };
    if (given.ifAbsent !== true) {
      return createWarning(session, resource, { method, request, created: field }, createOne);
    }
    const { createIfAbsent, isSameJson } = await import("../if-absent.js");
    const wished = conditions.map((condition) => toJson(ConditionSchema, condition));
    let stored: JsonValue = [];
    await createIfAbsent(
      session,
      { resource, method, request, field, paths: [...built.paths, ...findRelationship(identity)] },
      {
        create: createOne,
        print: async (existing) => {
          const ofExisting = create(GetConditionsRequestSchema, { identity: String(existing.uid) });
          stored = (await call(TrustService.method.getConditions, ofExisting)).conditions ?? [];
          const isSame = isSameJson(stored, wished);
          await print(existing, stored, isSame ? trust.accepted : "");
        },
        compare: async () => (isSameJson(stored, wished) ? [] : ["conditions"]),
      },
    );
  });
}

function findRelationship({ relationship }: Identity): string[] {
  const field = IdentitySchema.fields.find(({ localName }) => localName === relationship.case);
  return field === undefined ? [] : [field.name];
}

/** Sets issuer and subject, of static keys as well. Other parts of the relationship stay, such as an audience. */
function setTrust(identity: Identity, { issuer, subject }: Trust, { chosenBy }: Preset): void {
  const { relationship } = identity;
  const reject = (flag: string): never => {
    throw invalidFlag(`--${chosenBy}`, `cannot be combined with ${flag}`);
  };
  switch (relationship.case) {
    case undefined: {
      const value = create(Identity_ClaimMatchSchema, { iss: { case: "issuer", value: issuer }, sub: subject });
      identity.relationship = { case: "claimMatch", value };
      return;
    }
    case "claimMatch": {
      const { value } = relationship;
      if (value.iss.case !== undefined) reject(value.iss.case === "issuer" ? "--issuer" : "--issuer-pattern");
      if (value.sub.case !== undefined) reject(value.sub.case === "subject" ? "--subject" : "--subject-pattern");
      value.iss = { case: "issuer", value: issuer };
      value.sub = subject;
      return;
    }
    case "staticKeys": {
      const { value } = relationship;
      if (value.issuer !== "") reject("--static-keys-issuer");
      if (value.subject !== "") reject("--static-keys-subject");
      if (subject.case !== "subject") reject("static keys, whose subjects are no patterns");
      value.issuer = issuer;
      value.subject = subject.value;
      return;
    }
    default:
      reject("another relationship");
  }
}

// Names have small letters, digits and a few other characters.
function toName(text: string): string {
  return text.toLowerCase().replace(/[^a-z0-9._-]+/g, "-");
}
