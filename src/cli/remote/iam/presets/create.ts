// `arbor iam identities create` with the flags of a preset: one call, which creates the identity with its conditions.
import { create, type JsonObject } from "@bufbuild/protobuf";
import { ConditionSchema, CreateIdentityRequestSchema, TrustService } from "#gen/arbor/trust/v1/trust_pb.js";
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
  const request = (await buildRequest(method.input, flags, given, field)).request as CreateIdentityRequest;
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
    await createWarning(session, resource, { method, request, created: field }, async () => {
      const { call, output } = session;
      const response = await call(TrustService.method.createIdentity, trusting);
      const { identity: created = {}, conditions: stored = [] } = response;
      const rows = (): DetailRow[] => [
        ...toDetailRows(IdentitySchema, omitUnseen(created as JsonObject)),
        ...conditions.map((condition): DetailRow => ["condition", formatCondition(condition)]),
        ["accepts", trust.accepted],
      ];
      // The members of an identity, as without a preset.
      const json = { ...(created as JsonObject), conditions: stored };
      await output.write(formatResponse(given.output, json, rows, output.terminal));
    });
  });
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
