// What docs/api-rules.md says about identity providers.
import { absent, type CallStep, invalid, precondition, type Rule, rejects, type Step } from "./rule.js";

const requestProvider = (oidc: object) => ({
  parent: "<freshRoot>",
  identityProvider: { name: "p", defaultRole: "<viewerRole>", oidc },
});

const createsProvider: Step = {
  call: "CreateIdentityProvider",
  as: "freshOwner",
  request: requestProvider({ issuer: "https://login.example", clientId: "id", clientSecret: "secret" }),
  expect: { result: { name: "p", oidc: { clientId: "id", clientSecret: "" } }, text: /^(?!.*secret":"secret)/ },
  keep: { made: "uid" },
};

interface MappingApi {
  readonly service: string;
  /** The request that creates a mapping in this version, of the viewer role unless said otherwise. */
  readonly create: (scope: string, roleUid?: string) => object;
  /** The method of groups that deletes one, and the field with its uid. */
  readonly deleteGroup: readonly [method: string, field: string];
}

const createMappingV2 = (scope: string, roleUid = "<viewerRole>") => ({
  parent: "<made>",
  externalGroupRoleMapping: { externalGroupId: "team", roleUid, scope },
});

/** How each version creates mappings. */
const mappingApis: readonly MappingApi[] = [
  {
    service: "iam.ExternalGroupRoleMappings",
    create: (scope, roleUidp = "<viewerRole>") => ({
      parentId: "<made>",
      mapping: { externalGroupId: "team", roleUidp, scope },
    }),
    deleteGroup: ["iam.Groups.Delete", "id"],
  },
  ...["iam.v2beta1", "iam.v2"].map((version) => ({
    service: `${version}.ExternalGroupRoleMappingsService`,
    create: createMappingV2,
    deleteGroup: [`${version}.GroupsService.DeleteGroup`, "uid"] as const,
  })),
];

const noRole = ["roleUid", "roleUid must be a built-in role or one of the group or above it"] as const;

/** What is wrong with a mapping, and the rules that it breaks. */
const wrongMappings: Readonly<
  Record<string, readonly [mapping: object, ...violations: readonly (readonly [field: string, rule: string])[]]>
> = {
  nothing: [
    { externalGroupId: "", roleUid: "", scope: "" },
    ...["externalGroupId", "roleUid", "scope"].map((field) => [field, `${field} is required`] as const),
  ],
  "uids that are not uids": [
    { roleUid: "r", scope: "s" },
    ...["roleUid", "scope"].map((field) => [field, `${field} must be a uid, such as the service assigns`] as const),
  ],
  "a role that does not exist": [{ roleUid: "<freshRoot>/0123456789abcdef" }, noRole],
};

const mappingRejections = Object.entries(wrongMappings).map(([what, [mapping, ...violations]]): Rule => {
  const externalGroupRoleMapping = { externalGroupId: "g", roleUid: "<viewerRole>", scope: "<freshRoot>", ...mapping };
  const row = rejects(`a mapping of ${what} is rejected`, {
    anchor: "group-mappings",
    call: "CreateExternalGroupRoleMapping",
    request: { parent: "<made>", externalGroupRoleMapping },
    violations,
  });
  return { anchor: row.anchor, says: row.says, steps: [createsProvider, { ...(row as CallStep), as: "freshOwner" }] };
});

// At which groups a mapping grants its role, in one version.
function rulesOfMappings({ service, create, deleteGroup: [deleteGroup, uidField] }: MappingApi): Rule[] {
  const [method, uid] = service.startsWith("iam.v2") ? ["CreateExternalGroupRoleMapping", "uid"] : ["Create", "id"];
  const creates = (request: object, expect: Step["expect"]): Step => ({
    ...{ call: `${service}.${method}`, as: "freshOwner", request, expect },
    ...(expect.code === undefined && { keep: { mapping: uid } }),
  });
  const createsGroup: Step = {
    call: "CreateGroup",
    as: "freshOwner",
    request: { parent: "<freshRoot>", group: { name: "team" } },
    expect: {},
    keep: { team: "uid" },
  };
  const noScope = invalid(["scope", "scope must be a group of the organisation"]);
  const anchor = "group-mappings";
  return [
    {
      anchor,
      says: `${service}: the scope is any group of the organisation`,
      steps: [
        createsProvider,
        createsGroup,
        creates(create("<team>"), { result: { scope: "<team>", externalGroupId: "team" } }),
        creates(create("<freshRoot>"), { result: { scope: "<freshRoot>" } }),
        creates(create("<team>"), { code: "ALREADY_EXISTS" }),
      ],
    },
    {
      anchor,
      says: `${service}: the error of another organisation's group is that of one that does not exist`,
      steps: [
        createsProvider,
        creates(create("<fresh>"), noScope),
        creates(create("0123456789abcdef0123456789abcdef01234567"), noScope),
        creates(create("<freshRoot>/0123456789abcdef"), noScope),
        creates(create("<made>"), noScope),
      ],
    },
    {
      anchor,
      says: `${service}: a group that is the scope of a mapping is not deleted`,
      steps: [
        createsProvider,
        createsGroup,
        creates(create("<team>"), {}),
        {
          call: deleteGroup,
          as: "freshOwner",
          request: { [uidField]: "<team>" },
          expect: precondition("RESOURCE_IN_USE", "cannot delete group that external group role mappings name"),
        },
        {
          call: "DeleteExternalGroupRoleMapping",
          as: "freshOwner",
          request: { uid: "<mapping>" },
          expect: { text: "" },
        },
        { call: deleteGroup, as: "freshOwner", request: { [uidField]: "<team>" }, expect: { text: "" } },
      ],
    },
  ];
}

/** The services of all versions, with the name of the field that has the uid of the provider. */
const scimServices = [
  ["iam.IdentityProviders", "identityProviderId"],
  ["iam.v2beta1.IdentityProvidersService", "identityProviderUid"],
  ["iam.v2.IdentityProvidersService", "identityProviderUid"],
] as const;

const TOKEN = /^cgscim_[0-9a-f]{64}$/;
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
// The clock of the service goes no further than that, because keys are rotated after some months.
const LATER_MS = 6 * HOUR_MS;
const expireTime = new Date(Date.now() + LATER_MS).toISOString();
// A year from the day of the test, which may end meanwhile.
const days = [0, DAY_MS].map((ms) => new Date(Date.now() + 365 * DAY_MS + ms).toISOString().slice(0, 10));
const inAYear = new RegExp(`^(?:${days.join("|")})T`);

// What the tokens of a directory are, by the methods of one version.
function rulesOfTokens([service, scope]: (typeof scimServices)[number]): Rule[] {
  const send = (method: string, request: object, expect: Step["expect"], more: Partial<Step> = {}): Step => ({
    ...{ call: `${service}.${method}`, as: "freshOwner", request: { [scope]: "<made>", ...request }, expect },
    ...(more as object),
  });
  const generates = (request: object = {}) =>
    send("GenerateScimToken", request, { result: { token: TOKEN } }, { keep: { etag: "etag", first: "expireTime" } });
  const regenerates = (request: object, expect: Step["expect"] = { result: { token: TOKEN } }) =>
    send("RegenerateScimToken", { etag: "<etag>", ...request }, expect, expect.code ? {} : { keep: { etag: "etag" } });
  const hasState = (state: string, scim: object = {}, laterMs = 0): Step => ({
    ...{ call: "GetIdentityProvider", as: "freshOwner", request: { uid: "<made>" }, laterMs },
    expect: { result: { scim: { credentialState: `CREDENTIAL_STATE_${state}`, ...scim } } },
  });
  const exists = "there is a valid SCIM token: regenerate it, or revoke it first";
  const none = { code: "NOT_FOUND", message: "Not found: identity provider: there is no SCIM token" };
  const stale = { code: "ABORTED", status: 409, message: "Aborted: etag: the provider has changed since it was read" };
  const anchor = "scim";
  return [
    {
      anchor,
      says: `${service}.GenerateScimToken hands out one token, where the endpoint is`,
      steps: [
        createsProvider,
        hasState("NOT_ISSUED", { endpointUrl: /^https?:\/\/[^/]+\/scim\/v2\/[0-9a-f/]+$/, etag: "" }),
        send(
          "GenerateScimToken",
          {},
          { result: { token: TOKEN, endpointUrl: /^http/, [scope]: "<made>", expireTime: /^20/, etag: /./ } },
          { keep: { endpoint: "endpointUrl", etag: "etag" } },
        ),
        hasState("LIVE", { endpointUrl: "<endpoint>", etag: "<etag>", enabled: false }),
        send("GenerateScimToken", {}, precondition("SCIM_TOKEN_EXISTS", exists)),
      ],
    },
    {
      anchor,
      says: `${service}: a token expires after a year`,
      steps: [createsProvider, send("GenerateScimToken", {}, { result: { expireTime: inAYear } })],
    },
    {
      anchor,
      says: `${service}: a token expires, and another one is generated then`,
      steps: [
        createsProvider,
        generates({ expireTime }),
        hasState("LIVE", { tokenExpireTime: "<first>" }, LATER_MS - HOUR_MS),
        hasState("EXPIRED", { tokenExpireTime: "<first>" }, HOUR_MS + 1),
        generates(),
        hasState("LIVE"),
      ],
    },
    {
      anchor,
      says: `${service}: a token may never expire`,
      steps: [
        createsProvider,
        send("GenerateScimToken", { neverExpires: true }, { result: { token: TOKEN, expireTime: absent } }),
        hasState("LIVE", { tokenExpireTime: absent }, DAY_MS),
      ],
    },
    {
      anchor,
      says: `${service}: a token expires within two years, in the future, or never`,
      steps: [
        createsProvider,
        ...["GenerateScimToken", "RegenerateScimToken"].flatMap((method) => {
          const before = method === "GenerateScimToken" ? [] : [generates()];
          const etag = method === "GenerateScimToken" ? {} : { etag: "<etag>" };
          const invalidTime = invalid([/^expire_?[tT]ime$/, /must be in the future, at most 2 years from now/]);
          return [
            ...before,
            ...["2020-01-01T00:00:00Z", "9999-01-01T00:00:00Z"].map((expireTime) =>
              send(method, { expireTime, ...etag }, invalidTime),
            ),
            send(
              method,
              { expireTime, neverExpires: true, ...etag },
              invalid([/^expire_?[tT]ime$/, /must be absent where never_?[eE]xpires is set/]),
            ),
          ];
        }),
      ],
    },
    {
      anchor,
      says: `${service}.RegenerateScimToken leaves the former token valid for an hour`,
      steps: [
        createsProvider,
        generates(),
        regenerates({}, { result: { token: TOKEN, previousTokenExpireTime: /^20/, requestedOverlap: "3600s" } }),
        hasState("ROTATING", { previousTokenExpireTime: /^20/ }, HOUR_MS - 60_000),
        send("GenerateScimToken", {}, precondition("SCIM_TOKEN_EXISTS", exists)),
        hasState("LIVE", { previousTokenExpireTime: absent }, 60_001),
      ],
    },
    {
      anchor,
      says: `${service}.RegenerateScimToken leaves it valid for the overlap, which is cut to a day`,
      steps: [
        createsProvider,
        generates(),
        regenerates({ overlap: "172800s" }, { result: { requestedOverlap: "172800s" } }),
        hasState("ROTATING", {}, DAY_MS - 60_000),
        hasState("LIVE", {}, 60_001),
        regenerates({ overlap: "0s" }, { result: { requestedOverlap: "0s" } }),
        hasState("LIVE", { previousTokenExpireTime: absent }),
        regenerates({ overlap: "-1s" }, invalid([/^overlap$/, /must be a duration from 0 seconds on/])),
      ],
    },
    {
      anchor,
      says: `${service}: replacing a token does not extend it`,
      steps: [
        createsProvider,
        generates({ expireTime }),
        hasState("LIVE", {}, LATER_MS - HOUR_MS / 2),
        regenerates({}, { result: { previousTokenExpireTime: "<first>", requestedOverlap: "3600s" } }),
        hasState("ROTATING", { previousTokenExpireTime: "<first>" }),
        hasState("LIVE", {}, HOUR_MS / 2 + 1),
      ],
    },
    {
      anchor,
      says: `${service}.RegenerateScimToken replaces a token that has expired or was revoked, which stays invalid`,
      steps: [
        createsProvider,
        send("RegenerateScimToken", { etag: "x" }, none),
        generates({ expireTime }),
        hasState("EXPIRED", {}, LATER_MS + 1),
        regenerates({}, { result: { token: TOKEN, previousTokenExpireTime: absent } }),
        hasState("LIVE"),
        send("RevokeScimToken", {}, { result: { enabled: false } }, { keep: { etag: "etag" } }),
        regenerates({}, { result: { token: TOKEN, previousTokenExpireTime: absent } }),
        hasState("LIVE"),
      ],
    },
    {
      anchor,
      says: `${service}.RevokeScimToken ends both tokens, and another one is generated`,
      steps: [
        createsProvider,
        send("RevokeScimToken", {}, none),
        generates(),
        regenerates({}),
        send(
          "RevokeScimToken",
          {},
          { result: { [scope]: "<made>", enabled: false, revokeTime: /^20/, etag: /./ } },
          { keep: { revoked: "revokeTime" } },
        ),
        hasState("REVOKED", { tokenExpireTime: "<revoked>", previousTokenExpireTime: absent }),
        send("RevokeScimToken", {}, none),
        generates(),
        hasState("LIVE"),
      ],
    },
    {
      anchor,
      says: `${service}: a change needs the newest etag, and sets another one`,
      steps: [
        createsProvider,
        send("SetScimEnabled", { etag: "x" }, stale),
        generates(),
        send("RegenerateScimToken", { etag: "x" }, stale),
        regenerates({}),
        send("RegenerateScimToken", {}, invalid([/^etag$/, /is required/])),
        send("SetScimEnabled", { etag: "<etag>" }, { result: { enabled: false, etag: /./ } }),
        send("SetScimEnabled", { etag: "<etag>" }, stale),
        regenerates({}, stale),
      ],
    },
  ];
}

const OIDC = { issuer: "https://login.example", clientId: "id", clientSecret: "s" };
const withOidc = (oidc: object) => ({ oidc: { ...OIDC, ...oidc } });
const ISSUER = "oidc.issuer must be an https URL without user, query or fragment";

/** What is wrong with a provider, and the rules that it breaks. */
const wrongProviders: Readonly<
  Record<string, readonly [provider: object, ...violations: readonly (readonly [field: string, rule: string])[]]>
> = {
  nothing: [
    { name: "", defaultRole: "", oidc: null },
    ["name", "name must match ^[a-z0-9 ._-]{1,}$: name is required"],
    ["defaultRole", "defaultRole is required"],
    ["oidc", "oidc is required"],
  ],
  "a role that is no uid": [
    { defaultRole: "viewer" },
    ["defaultRole", "defaultRole must be a uid, such as the service assigns"],
  ],
  "no client": [withOidc({ clientId: "" }), ["oidc", "oidc.clientId is required"]],
  "neither secret nor PKCE": [
    withOidc({ clientSecret: "" }),
    ["oidc.clientSecret", "clientSecret is required unless pkceEnabled is set"],
  ],
  "a scope with a blank": [
    withOidc({ additionalScopes: ["a b"] }),
    ["oidc", "oidc.additionalScopes must be at most 32 scope names"],
  ],
  ...Object.fromEntries(
    [
      ...["http://login.example", "https://u:p@login.example", "https://:p@login.example", "https://login.example?x"],
      ...["https://LOGIN.example", "x", ""],
    ].map((issuer) => [`the issuer ${JSON.stringify(issuer)}`, [withOidc({ issuer }), ["oidc", ISSUER]]]),
  ),
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
        oidc: OIDC,
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
  ...Object.entries(wrongProviders).map(([what, [provider, ...violations]]) =>
    rejects(`a provider of ${what} is rejected`, {
      anchor: "identity-providers",
      call: "CreateIdentityProvider",
      request: {
        parent: "<org>",
        identityProvider: { name: "p", defaultRole: "<viewerRole>", oidc: OIDC, ...provider },
      },
      violations,
    }),
  ),
  {
    anchor: "identity-providers",
    says: "a provider needs no secret with PKCE",
    call: "CreateIdentityProvider",
    as: "freshOwner",
    request: requestProvider({ issuer: "https://login.example", clientId: "id", pkceEnabled: true }),
    expect: { result: { oidc: { pkceEnabled: true } } },
  },
  ...mappingApis.flatMap(rulesOfMappings),
  ...mappingRejections,
  {
    anchor: "group-mappings",
    says: "a caller maps a role only at a group where it holds what the role grants",
    shownBy: "test/iam/group-mappings.test.ts",
    test: "is made at any group where its maker holds what the role grants, and at no other",
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
        oidc: OIDC,
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
    says: "the default role is set and cleared while SCIM is on, and SCIM is turned off with none as well",
    steps: [
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
        call: "SetScimEnabled",
        as: "freshOwner",
        request: { identityProviderUid: "<freshDirectory>", etag: "e" },
        expect: { result: { enabled: false } },
      },
      {
        call: "GetIdentityProvider",
        as: "freshOwner",
        request: { uid: "<freshDirectory>" },
        expect: { result: { defaultRole: "", scim: { enabled: false } } },
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
  ...scimServices.flatMap(rulesOfTokens),
  {
    anchor: "scim",
    says: "a list of version 2 has no SCIM, and that of version 1 has it",
    steps: [
      createsProvider,
      {
        call: "ListIdentityProviders",
        as: "freshOwner",
        request: { uidp: { ids: ["<made>"] } },
        expect: { result: { identityProviders: [{ uid: "<made>", scim: absent }] } },
      },
      {
        call: "iam.IdentityProviders.List",
        as: "freshOwner",
        request: { id: "<made>" },
        expect: { result: { items: [{ id: "<made>", scim: { enabled: false, endpointUrl: /^http/ } }] } },
      },
    ],
  },
  {
    anchor: "scim",
    says: "turning it on needs two owners, no valid token, and the newest state",
    shownBy: "test/iam/identity-providers.test.ts",
    test: "are enabled only with two owners, and by who saw the newest state",
  },
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
