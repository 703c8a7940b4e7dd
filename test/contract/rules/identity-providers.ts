// What docs/api-rules.md says about identity providers.
import { invalid, precondition, type Rule, type Step } from "./rule.js";

const createsProvider: Step = {
  call: "CreateIdentityProvider",
  as: "freshOwner",
  request: {
    parent: "<freshRoot>",
    identityProvider: {
      name: "p",
      defaultRole: "<viewerRole>",
      oidc: { issuer: "https://login.example", clientId: "id", clientSecret: "secret" },
    },
  },
  expect: { result: { name: "p", oidc: { clientId: "id", clientSecret: "" } }, text: /^(?!.*secret":"secret)/ },
  keep: { made: "uid" },
};

/** Identity providers. */
export const identityProviders: readonly Rule[] = [
  { anchor: "identity-providers", says: "the secret of a provider is never returned", steps: [createsProvider] },
  {
    anchor: "identity-providers",
    says: "a provider belongs to a root group",
    call: "CreateIdentityProvider",
    request: {
      parent: "<fresh>",
      identityProvider: {
        name: "p",
        defaultRole: "<viewerRole>",
        oidc: { issuer: "https://login.example", clientId: "id", clientSecret: "s" },
      },
    },
    expect: { code: "INVALID_ARGUMENT" },
  },
  {
    anchor: "identity-providers",
    says: "an update with an empty secret keeps it",
    steps: [
      createsProvider,
      {
        call: "UpdateIdentityProvider",
        as: "freshOwner",
        request: { identityProvider: { uid: "<made>", oidc: { clientId: "other" } }, updateMask: "oidc.clientId" },
        expect: { result: { oidc: { clientId: "other" } } },
      },
    ],
  },
  {
    anchor: "identity-providers",
    says: "a new issuer needs the secret again",
    steps: [
      createsProvider,
      {
        call: "UpdateIdentityProvider",
        as: "freshOwner",
        request: {
          identityProvider: { uid: "<made>", oidc: { issuer: "https://other.example" } },
          updateMask: "oidc.issuer",
        },
        expect: invalid([/client_?[sS]ecret$/, /./]),
      },
    ],
  },
  {
    anchor: "identity-providers",
    says: "the secret goes to no issuer but its own",
    shownBy: "test/iam/identity-providers.test.ts",
    test: "hands its secret to no issuer but the one it was given for",
  },
  {
    anchor: "identity-providers",
    says: "a provider is deleted with its mappings",
    steps: [
      createsProvider,
      {
        call: "CreateExternalGroupRoleMapping",
        as: "freshOwner",
        request: {
          parent: "<made>",
          externalGroupRoleMapping: { externalGroupId: "team", roleUid: "<viewerRole>", scope: "<freshRoot>" },
        },
        expect: {},
        keep: { mapping: "uid" },
      },
      { call: "DeleteIdentityProvider", as: "freshOwner", request: { uid: "<made>" }, expect: { text: "" } },
      {
        call: "ListExternalGroupRoleMappings",
        as: "freshOwner",
        request: { uidp: { descendantsOf: "<freshRoot>" } },
        expect: { result: { totalCount: "0" } },
      },
    ],
  },
  {
    anchor: "identity-providers",
    says: "the bindings that a directory manages are deleted with its provider",
    steps: [
      {
        call: "DeleteIdentityProvider",
        as: "freshOwner",
        made: ["<freshManagedBinding>"],
        request: { uid: "<freshDirectory>" },
        expect: { text: "" },
      },
      {
        call: "ListRoleBindings",
        as: "freshOwner",
        request: { uidp: { ids: ["<freshManagedBinding>"] } },
        expect: { result: { totalCount: "0" } },
      },
    ],
  },
  {
    anchor: "identity-providers",
    says: "a new provider has a default role",
    call: "CreateIdentityProvider",
    as: "freshOwner",
    request: {
      parent: "<freshRoot>",
      identityProvider: {
        name: "p",
        oidc: { issuer: "https://login.example", clientId: "id", clientSecret: "s" },
      },
    },
    expect: invalid([/^default_?[rR]ole$/, /is required/]),
  },
  {
    anchor: "identity-providers",
    says: "the default role stays while SCIM is off",
    steps: [
      createsProvider,
      {
        call: "UpdateIdentityProvider",
        as: "freshOwner",
        request: { identityProvider: { uid: "<made>" }, updateMask: "defaultRole" },
        expect: invalid([/^default_?[rR]ole$/, /is required/]),
      },
    ],
  },
  {
    anchor: "identity-providers",
    says: "the default role is set and cleared while SCIM is on, and SCIM is turned off with one alone",
    steps: [
      {
        call: "SetScimEnabled",
        as: "freshOwner",
        request: { identityProviderUid: "<freshDirectory>", etag: "e" },
        expect: precondition("DEFAULT_ROLE_REQUIRED", "without SCIM a provider needs a default role: set one first"),
      },
      {
        call: "UpdateIdentityProvider",
        as: "freshOwner",
        request: {
          identityProvider: { uid: "<freshDirectory>", defaultRole: "<editorRole>" },
          updateMask: "defaultRole",
        },
        expect: { result: { defaultRole: "<editorRole>" } },
      },
      {
        call: "UpdateIdentityProvider",
        as: "freshOwner",
        request: { identityProvider: { uid: "<freshDirectory>" }, updateMask: "defaultRole" },
        expect: { result: { defaultRole: "" } },
      },
      {
        call: "UpdateIdentityProvider",
        as: "freshOwner",
        request: {
          identityProvider: { uid: "<freshDirectory>", defaultRole: "<viewerRole>" },
          updateMask: "defaultRole",
        },
        expect: { result: { defaultRole: "<viewerRole>" } },
      },
      {
        call: "SetScimEnabled",
        as: "freshOwner",
        request: { identityProviderUid: "<freshDirectory>", etag: "e" },
        expect: { result: { enabled: false } },
      },
    ],
  },
  {
    anchor: "identity-providers",
    says: "SetScimEnabled clears the default role",
    shownBy: "test/iam/identity-providers.test.ts",
    test: "are enabled only with two owners, and by who saw the newest state",
  },
  {
    anchor: "identity-providers",
    says: "people of a provider without a default role get no binding at their first login",
    shownBy: "test/issuer/oauth/code-flow.test.ts",
    test: "people of a provider without a default role sign in, and get no role",
  },
  {
    anchor: "identity-providers",
    says: "the setting of the token endpoint is stored",
    steps: [
      createsProvider,
      {
        call: "UpdateIdentityProvider",
        as: "freshOwner",
        request: {
          identityProvider: {
            uid: "<made>",
            oidc: { tokenEndpointAuthMethod: "TOKEN_ENDPOINT_AUTH_METHOD_CLIENT_SECRET_BASIC" },
          },
          updateMask: "oidc.tokenEndpointAuthMethod",
        },
        expect: {
          result: {
            oidc: { tokenEndpointAuthMethod: "TOKEN_ENDPOINT_AUTH_METHOD_CLIENT_SECRET_BASIC", clientId: "id" },
          },
        },
      },
      {
        call: "iam.IdentityProviders.Update",
        as: "freshOwner",
        request: {
          id: "<made>",
          name: "p",
          defaultRole: "<viewerRole>",
          oidc: { issuer: "https://login.example", clientId: "id" },
        },
        expect: { result: { oidc: { clientId: "id" } } },
      },
      {
        call: "GetIdentityProvider",
        as: "freshOwner",
        request: { uid: "<made>" },
        expect: {
          result: { oidc: { tokenEndpointAuthMethod: "TOKEN_ENDPOINT_AUTH_METHOD_CLIENT_SECRET_BASIC" } },
        },
      },
    ],
  },
  {
    anchor: "identity-providers",
    says: "a login sends the secret as the setting says",
    shownBy: "test/issuer/oauth/secret-methods.test.ts",
    test: "a provider that accepts ",
  },
  ...["iam.v2beta1.IdentityProvidersService", "iam.v2.IdentityProvidersService"].map(
    (service): Rule => ({
      anchor: "identity-providers",
      says: `SCIM tokens are not handed out by ${service}, because no endpoint is served`,
      steps: [
        createsProvider,
        ...[`${service}.GenerateScimToken`, `${service}.RegenerateScimToken`].map(
          (call): Step => ({
            call,
            as: "freshOwner",
            request: { identityProviderUid: "<made>", ...(call.includes(".Re") && { etag: "x" }) },
            expect: { code: "UNIMPLEMENTED" },
          }),
        ),
      ],
    }),
  ),
  {
    anchor: "identity-providers",
    says: "over REST what SCIM has is there, false values too",
    steps: [
      createsProvider,
      {
        http: "GET /iam/v2beta1/identityProviders/<made>",
        as: "freshOwner",
        expect: { json: { scim: { enabled: false } } },
      },
    ],
    over: ["REST"],
  },
];
