// IdentityProviders, version 1: a view of IdentityProvidersService.
import { create, type Message, type MessageInitShape } from "@bufbuild/protobuf";
import {
  type DeleteIdentityProviderRequest,
  GenerateScimTokenResponseSchema,
  type IdentityProvider,
  type IdentityProvider_OIDC,
  type IdentityProvider_SCIMSchema,
  IdentityProviderSchema,
  IdentityProviders,
  RegenerateScimTokenResponseSchema,
  RevokeScimTokenResponseSchema,
  SetScimEnabledResponseSchema,
} from "#gen/chainguard/platform/iam/identity_providers_pb.js";
import type {
  IdentityProvidersService,
  IdentityProvider_OIDC as OidcV2,
  IdentityProvider as ProviderV2,
  IdentityProvider_SCIM as ScimV2,
} from "#gen/chainguard/platform/iam/v2beta1/identity_providers_pb.js";
import { defineBodies } from "../../pipeline/body.js";
import type { UnaryCall } from "../../pipeline/call.js";
import { type Handlers, listInChunks, withOutcome, withPreparation } from "../../pipeline/handlers.js";
import { type ServedService, serve } from "../../pipeline/method-table.js";
import { createOperations } from "../../pipeline/operations.js";
import {
  defineFixedFields,
  requireCreated,
  requireUpdated,
  setByService,
} from "../../pipeline/resource/fixed-fields.js";
import { findsResource } from "../../pipeline/resource/read.js";
import { createChunkReader } from "../../pipeline/resource/unpaginated-list.js";
import { type IdentityProviderRow, identityProviderKind } from "../../store/iam/identity-providers.js";
import { identityProviders, identityProviderToProto, oidcFromJson } from "./identity-provider.js";
import { deleteDependents, type IdentityProviderDeps } from "./identity-provider-v2beta1.js";

// The mask names `oidc` and not `oidc.client_secret`. Responses never have the secret, so a provider that is
// read and sent back has none, and its stored secret must stay. Of a provider whose default role may be absent, an empty
// one leaves it as it is.
function buildMask({ defaultRole }: IdentityProvider, before: IdentityProviderRow | undefined) {
  const keepsRole = defaultRole === "" && before?.scim.enabled === true;
  return { paths: ["name", "description", ...(keepsRole ? [] : ["default_role"]), "oidc"] };
}

// The other fields of SCIM change without a request, such as the state of its tokens.
const fixed = defineFixedFields(IdentityProviderSchema, {
  "scim.enabled": { rule: "is changed with SetScimEnabled" },
  "scim.endpointUrl": setByService(),
});

const readers = [IdentityProviders.method.list] as const;
const without = ["token"];

/** Creates IdentityProviders of version 1. */
export function identityProvidersV1(
  served: ServedService<typeof IdentityProvidersService>,
  { store, baseUrl }: Pick<IdentityProviderDeps, "store" | "baseUrl">,
) {
  const rowToProto = (row: IdentityProviderRow, { startMs: nowMs }: Pick<UnaryCall, "startMs">) =>
    toProtoV1(identityProviderToProto(row, { nowMs, baseUrl }));
  const names = { uid: "id", parent: "parentId", identityProviderUid: "identityProviderId" };
  const v2 = createOperations(served, names);
  const handlers: Handlers<typeof IdentityProviders> = {
    async create({ parentId, identityProvider }, call) {
      const request = { parent: parentId, identityProvider: fromV1(identityProvider) };
      return requireCreated(fixed, identityProvider, toProtoV1(await v2.createIdentityProvider(request, call)));
    },

    async update(provider, call) {
      const before = await call.tx.table(identityProviderKind).find(provider.id);
      const request = { identityProvider: fromV1(provider, before), updateMask: buildMask(provider, before) };
      return requireUpdated(fixed, provider, toProtoV1(await v2.updateIdentityProvider(request, call)));
    },

    // It is the only read of version 1, so it has SCIM, whose etag callers need.
    list: listInChunks(createChunkReader(identityProviders, rowToProto)),

    delete: withPreparation({
      prepare: ({ id }: DeleteIdentityProviderRequest, call) => deleteDependents(id, store, call),
      handle: ({ id }: DeleteIdentityProviderRequest, call) => v2.deleteIdentityProvider({ uid: id }, call),
    }),

    generateScimToken: async (request, call) => scimToV1(await v2.generateScimToken(scimFromV1(request), call)),
    regenerateScimToken: async (request, call) => scimToV1(await v2.regenerateScimToken(scimFromV1(request), call)),
    revokeScimToken: async (request, call) => scimToV1(await v2.revokeScimToken(scimFromV1(request), call)),
    setScimEnabled: async (request, call) => scimToV1(await v2.setScimEnabled(scimFromV1(request), call)),
  };
  const bodies = defineBodies(
    { message: IdentityProviderSchema, readers },
    findsResource(identityProviders, (row, call: UnaryCall) => rowToProto(row, call)),
  );
  return serve(IdentityProviders, handlers, {
    create: { body: bodies.created },
    update: { body: bodies.updated },
    delete: { body: bodies.deleted },
    generateScimToken: { body: { view: { message: GenerateScimTokenResponseSchema, readers, without } } },
    regenerateScimToken: { body: { view: { message: RegenerateScimTokenResponseSchema, readers, without } } },
    revokeScimToken: { body: { view: { message: RevokeScimTokenResponseSchema, readers } } },
    setScimEnabled: { body: { view: { message: SetScimEnabledResponseSchema, readers } } },
  });
}

// The fields that callers set. What only version 2 has stays as it is.
function fromV1(
  { id, name, description, defaultRole, configuration }: Partial<IdentityProvider> = {},
  before?: IdentityProviderRow,
) {
  const { configuration: oidc } = copyOidc(configuration);
  const { tokenEndpointAuthMethod } = oidcFromJson(before?.oidc ?? {});
  return {
    ...{ uid: id ?? "", name: name ?? "", description: description ?? "", defaultRole: defaultRole ?? "" },
    ...(oidc && { configuration: { ...oidc, value: { ...oidc.value, tokenEndpointAuthMethod } } }),
  };
}

function toProtoV1({ uid, configuration, scim, createTime, updateTime, ...same }: ProviderV2) {
  const { name, description, defaultRole } = same;
  const view: MessageInitShape<typeof IdentityProviderSchema> = {
    ...{ id: uid, name, description, defaultRole },
    ...copyOidc(configuration),
    ...(scim && { scim: scimStateToV1(scim) }),
    ...(createTime && { createdAt: createTime }),
    ...(updateTime && { updatedAt: updateTime }),
  };
  return create(IdentityProviderSchema, view);
}

type Configuration = IdentityProvider["configuration"] | ProviderV2["configuration"];

// The OIDC settings are equal in both versions, but for those that only version 2 has.
function copyOidc({ value }: Configuration = { case: undefined }) {
  return value === undefined ? {} : { configuration: { case: "oidc" as const, value: copySettings(value) } };
}

// Correlation rules have the same numbers in both versions.
function copySettings({ issuer, clientId, clientSecret, additionalScopes, ...same }: IdentityProvider_OIDC | OidcV2) {
  const { groupsClaim, correlationRule, pkceEnabled } = same;
  return {
    ...{ issuer, clientId, clientSecret, additionalScopes, groupsClaim },
    ...{ correlationRule: correlationRule as number, pkceEnabled },
  };
}

// The states of credentials have the same numbers in both versions.
function scimStateToV1({ enabled, endpointUrl, tokenExpireTime, previousTokenExpireTime, ...same }: ScimV2) {
  const { credentialState, etag } = same;
  const view: MessageInitShape<typeof IdentityProvider_SCIMSchema> = {
    ...{ enabled, endpointUrl, credentialState: credentialState as number, etag },
    ...(tokenExpireTime && { tokenExpireTime }),
    ...(previousTokenExpireTime && { previousTokenExpireTime }),
  };
  return view;
}

function scimFromV1<M extends Message & { identityProviderId: string }>({
  $typeName: _,
  identityProviderId,
  ...same
}: M) {
  return { ...same, identityProviderUid: identityProviderId };
}

function scimToV1<M extends Message & { identityProviderUid: string }>(message: M) {
  const { $typeName: _, identityProviderUid, ...same } = message;
  return withOutcome({ ...same, identityProviderId: identityProviderUid }, { subjectUid: identityProviderUid });
}
