// What docs/api-rules.md says about identity providers.
import { invalid, type Rule, type Step } from "./rule.js";

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
