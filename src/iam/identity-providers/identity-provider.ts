// The identity provider resource: the login service of an organisation. Its client secret is sealed before it
// is stored, and no response has it.

import { clone, create, fromJson, type JsonObject, toJson } from "@bufbuild/protobuf";
import { IdentityProviders } from "#gen/chainguard/platform/iam/identity_providers_pb.js";
import { IdentityProvidersService as StableIdentityProvidersService } from "#gen/chainguard/platform/iam/v2/identity_providers_pb.js";
import {
  type IdentityProvider,
  type IdentityProvider_OIDC,
  IdentityProvider_OIDCSchema,
  IdentityProviderSchema,
  IdentityProvidersService,
  IdentityProvider_OIDC_TokenEndpointAuthMethodSchema as TokenEndpointAuthMethodSchema,
} from "#gen/chainguard/platform/iam/v2beta1/identity_providers_pb.js";
import { breakRule } from "../../kernel/errors.js";
import { timestampOf } from "../../kernel/time.js";
import { defineResource } from "../../pipeline/resource/define.js";
import { countRows } from "../../pipeline/resource/delete.js";
import { immutable } from "../../pipeline/resource/fixed-fields.js";
import { createsInScope } from "../../pipeline/resource/quota.js";
import {
  type FieldRule,
  isDescription,
  isIssuerUrl,
  isName,
  isOptionalUid,
  isPrintable,
  isRequiredUid,
} from "../../pipeline/resource/rules.js";
import {
  findDefaultRole,
  type IdentityProviderRow,
  identityProviderKind,
  type ScimState,
} from "../../store/iam/identity-providers.js";

import { findCredentialState } from "./scim-credential.js";

const MAX_TEXT = 512;
const MAX_SCOPES = 32;

const isOidc: FieldRule = (value, field) => {
  if (value === undefined) return breakRule(field, "is required");
  const { issuer, clientId, additionalScopes, groupsClaim, tokenEndpointAuthMethod } = value as IdentityProvider_OIDC;
  if (!isIssuerUrl(issuer)) {
    return breakRule(`${field}.issuer`, "must be an https URL without user, query or fragment");
  }
  if (clientId === "") return breakRule(`${field}.clientId`, "is required");
  if (!isText(clientId)) return breakRule(`${field}.clientId`, `must be 1 to ${MAX_TEXT} characters`);
  if (
    additionalScopes.length > MAX_SCOPES ||
    !additionalScopes.every((scope) => /^[\x21\x23-\x5b\x5d-\x7e]+$/.test(scope))
  ) {
    return breakRule(`${field}.additionalScopes`, `must be at most ${MAX_SCOPES} scope names`);
  }
  if (groupsClaim !== "" && !isText(groupsClaim)) {
    return breakRule(`${field}.groupsClaim`, `must be at most ${MAX_TEXT} characters`);
  }
  return TokenEndpointAuthMethodSchema.value[tokenEndpointAuthMethod] === undefined
    ? breakRule(`${field}.tokenEndpointAuthMethod`, "must name a method")
    : undefined;
};

function isText(text: string): boolean {
  return text !== "" && text.length <= MAX_TEXT && isPrintable(text);
}

export const identityProviders = defineResource({
  displayName: "identity provider",
  type: "iam.chainguard.dev/IdentityProvider",
  plural: "identity providers",
  message: IdentityProviderSchema,
  kind: identityProviderKind,
  parent: {
    type: "iam.chainguard.dev/Group",
    onDelete: { restrict: (tx, uid) => countRows(tx.table(identityProviderKind), "groupUid", uid) },
  },
  createdBy: [
    createsInScope(IdentityProvidersService.method.createIdentityProvider),
    createsInScope(IdentityProviders.method.create),
  ],
  stable: StableIdentityProvidersService,
  mutable: { name: isName, description: isDescription, defaultRole: isOptionalUid, oidc: isOidc },
  fixed: { "oidc.correlationRule": immutable() },
});

/** The rules for new providers, of which SCIM is off. */
export const newIdentityProviders = {
  ...identityProviders,
  mutable: { ...identityProviders.mutable, defaultRole: isRequiredUid },
};

/** Converts OIDC settings to what is stored: the JSON of their message without the client secret. */
export function oidcToJson(oidc: IdentityProvider_OIDC): object {
  const open = clone(IdentityProvider_OIDCSchema, oidc);
  open.clientSecret = "";
  return toJson(IdentityProvider_OIDCSchema, open) as JsonObject;
}

/** The context in which the client secret of a provider is sealed. */
export function formatSecretContext(uid: string): string {
  return `client secret ${uid}`;
}

/** Reads stored OIDC settings. */
export function oidcFromJson(json: object): IdentityProvider_OIDC {
  return fromJson(IdentityProvider_OIDCSchema, json as JsonObject, { ignoreUnknownFields: true });
}

/** The state before any credentials are issued. */
export const noScim: ScimState = { enabled: false, tokenHash: "", previousHash: "", revoked: false, etag: "" };

/** The path of all directories; the uid of a provider follows, and then its resources. */
export const SCIM_PATH = "/scim/v2";

/** Builds the URL where the directory of a provider pushes its people and groups. */
export function buildScimUrl(baseUrl: string, uid: string): string {
  return `${baseUrl}${SCIM_PATH}/${uid}`;
}

/** What a view of a provider depends on besides the provider. */
export interface ProviderView {
  /** In epoch milliseconds. */
  readonly nowMs: number;
  /** The base URL of the service. */
  readonly baseUrl: string;
}

/** Converts a stored provider to version 2. */
export function identityProviderToProto(row: IdentityProviderRow, { nowMs, baseUrl }: ProviderView): IdentityProvider {
  const { scim } = row;
  const { expireTimeMs, previousExpireTimeMs = 0 } = scim;
  return create(IdentityProviderSchema, {
    uid: row.uid,
    name: row.name,
    description: row.description,
    defaultRole: findDefaultRole(row) ?? "",
    createTime: timestampOf(row.createTimeMs),
    updateTime: timestampOf(row.updateTimeMs),
    configuration: { case: "oidc", value: oidcFromJson(row.oidc) },
    scim: {
      enabled: scim.enabled,
      endpointUrl: buildScimUrl(baseUrl, row.uid),
      credentialState: findCredentialState(scim, nowMs),
      etag: scim.etag,
      ...(expireTimeMs !== undefined && { tokenExpireTime: timestampOf(expireTimeMs) }),
      ...(previousExpireTimeMs > nowMs && { previousTokenExpireTime: timestampOf(previousExpireTimeMs) }),
    },
  });
}
