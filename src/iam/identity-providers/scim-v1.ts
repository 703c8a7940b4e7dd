// The methods of IdentityProviders, version 1, for the credentials of a
// directory: those of version 2, with the name that version 1 has for providers.
import type { Message } from "@bufbuild/protobuf";
import type { IdentityProviders } from "#gen/chainguard/platform/iam/identity_providers_pb.js";
import type { IdentityProvidersService } from "#gen/chainguard/platform/iam/v2beta1/identity_providers_pb.js";
import { type Handlers, withOutcome } from "../../pipeline/method-table.js";
import type { Operations } from "../../pipeline/operations.js";

type Methods = "generateScimToken" | "regenerateScimToken" | "revokeScimToken" | "setScimEnabled";

/** The handlers of the service that manage these credentials. */
export function scimHandlersV1(
  v2: Operations<typeof IdentityProvidersService>,
): Pick<Handlers<typeof IdentityProviders>, Methods> {
  return {
    generateScimToken: async (request, call) => outcomeOf(await v2.generateScimToken(sent(request), call)),
    regenerateScimToken: async (request, call) => outcomeOf(await v2.regenerateScimToken(sent(request), call)),
    revokeScimToken: async (request, call) => outcomeOf(await v2.revokeScimToken(sent(request), call)),
    setScimEnabled: async (request, call) => outcomeOf(await v2.setScimEnabled(sent(request), call)),
  };
}

function sent<M extends Message & { identityProviderId: string }>({ $typeName: _, identityProviderId, ...same }: M) {
  return { ...same, identityProviderUid: identityProviderId };
}

function outcomeOf<M extends Message & { identityProviderUid: string }>(message: M) {
  const { $typeName: _, identityProviderUid, ...same } = message;
  return withOutcome({ ...same, identityProviderId: identityProviderUid }, { subjectUid: identityProviderUid });
}
