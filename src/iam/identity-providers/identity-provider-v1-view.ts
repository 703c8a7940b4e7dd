import { create, type MessageInitShape } from "@bufbuild/protobuf";
import {
  type IdentityProvider,
  type IdentityProvider_OIDC,
  type IdentityProvider_SCIMSchema,
  IdentityProviderSchema,
} from "#gen/chainguard/platform/iam/identity_providers_pb.js";
import type {
  IdentityProvider_OIDC as OidcV2,
  IdentityProvider as ProviderV2,
  IdentityProvider_SCIM as ScimV2,
} from "#gen/chainguard/platform/iam/v2beta1/identity_providers_pb.js";

/** An identity provider of version 2 as version 1 shows it; neither has the client secret. */
export function identityProviderV1({ uid, configuration, scim, createTime, updateTime, ...same }: ProviderV2) {
  const { name, description, defaultRole } = same;
  const view: MessageInitShape<typeof IdentityProviderSchema> = {
    ...{ id: uid, name, description, defaultRole },
    ...oidcOf(configuration),
    ...(scim && { scim: scimV1(scim) }),
    ...(createTime && { createdAt: createTime }),
    ...(updateTime && { updatedAt: updateTime }),
  };
  return create(IdentityProviderSchema, view);
}

type Configuration = IdentityProvider["configuration"] | ProviderV2["configuration"];

/** How people log in by a provider of either version, to be shown or sent in the other. */
export function oidcOf({ value }: Configuration = { case: undefined }) {
  return value === undefined ? {} : { configuration: { case: "oidc" as const, value: settingsOf(value) } };
}

// The rules of correlation have the same numbers in both versions.
function settingsOf({ issuer, clientId, clientSecret, additionalScopes, ...same }: IdentityProvider_OIDC | OidcV2) {
  const { groupsClaim, correlationRule, pkceEnabled } = same;
  return {
    ...{ issuer, clientId, clientSecret, additionalScopes, groupsClaim },
    ...{ correlationRule: correlationRule as number, pkceEnabled },
  };
}

// As do the states of credentials.
function scimV1({ enabled, endpointUrl, tokenExpireTime, previousTokenExpireTime, ...same }: ScimV2) {
  const { credentialState, etag } = same;
  const view: MessageInitShape<typeof IdentityProvider_SCIMSchema> = {
    ...{ enabled, endpointUrl, credentialState: credentialState as number, etag },
    ...(tokenExpireTime && { tokenExpireTime }),
    ...(previousTokenExpireTime && { previousTokenExpireTime }),
  };
  return view;
}
