// What docs/api-rules.md says about tokens, their exchange and what they allow.
import { absent, denial, type Expectation, each, notFound, type Rule, type Step, unauthenticated } from "./rule.js";
import type { CallerName } from "./world.js";

const HOUR_MS = 3_600_000;
const JWT = /^[\w-]+\.[\w-]+\.[\w-]+$/;
const exchange = "oidc.SecurityTokenService.Exchange";

const gets = (as: CallerName, expect: Expectation, laterMs = 0): Step => ({
  call: "GetGroup",
  as,
  laterMs,
  request: { uid: "<shelf>" },
  expect,
});
const exchanges: Step = {
  call: exchange,
  as: "ciToken",
  request: { aud: ["<url>"], identity: "<ci>" },
  expect: { result: { token: JWT, expiry: /Z$/ } },
  keep: { token: "token" },
};

/** Tokens. */
const tokenRules: readonly Rule[] = [
  {
    anchor: "tokens",
    says: "a call without a token is UNAUTHENTICATED",
    ...gets("anonymous", unauthenticated),
  },
  {
    anchor: "tokens",
    says: "so is one with a token that is none",
    ...gets("garbled", unauthenticated),
  },
  {
    anchor: "tokens",
    says: "so is one whose identity was deleted",
    ...gets("deleted", unauthenticated),
  },
  {
    anchor: "tokens",
    says: "so is one with the token of another issuer",
    ...gets("ciToken", unauthenticated),
  },
  {
    anchor: "tokens",
    says: "so is one with an expired token",
    ...gets("expired", { code: "UNAUTHENTICATED", details: [] }),
  },
  {
    anchor: "tokens",
    says: "an expired token of this service is told so",
    ...gets("expired", { code: "UNAUTHENTICATED", message: /expired/ }),
  },
  {
    anchor: "tokens",
    says: "a header with another scheme is no token",
    http: "GET /iam/v2beta1/groups/<shelf>",
    as: "anonymous",
    headers: { authorization: "Basic YTpi" },
    expect: unauthenticated,
  },
  {
    anchor: "tokens",
    says: "health needs no token",
    call: "ping.v2beta1.PingService.Ping",
    as: "garbled",
    request: {},
    expect: {},
  },
  {
    anchor: "tokens",
    says: "one token is good for all versions and services",
    steps: [
      exchanges,
      { call: "ListGroups", as: "<token>", request: {}, expect: {} },
      { call: "iam.v2.GroupsService.ListGroups", as: "<token>", request: {}, expect: {} },
      { call: "iam.Groups.List", as: "<token>", request: {}, expect: {} },
      { call: "ListRepos", as: "<token>", request: {}, expect: {} },
      { call: "ListAdvisories", as: "<token>", request: {}, expect: {} },
    ],
  },
  {
    anchor: "tokens",
    says: "what a caller may do is read with every call: a deleted binding counts from the next one on",
    steps: [
      { call: "GetGroup", as: "freshViewer", request: { uid: "<fresh>" }, expect: { result: { uid: "<fresh>" } } },
      { call: "DeleteRoleBinding", request: { uid: "<freshViewerBinding>" }, expect: {} },
      { call: "GetGroup", as: "freshViewer", request: { uid: "<fresh>" }, expect: denial("groups.list at <fresh>") },
    ],
  },
  {
    anchor: "tokens",
    says: "discovery announces the algorithm of the tokens, and where their public keys are",
    steps: [
      {
        http: "GET /.well-known/openid-configuration",
        as: "anonymous",
        expect: {
          json: {
            issuer: "<url>",
            jwks_uri: "<url>/.well-known/jwks.json",
            id_token_signing_alg_values_supported: [/^(RS256|ES256)$/],
          },
        },
      },
      {
        http: "GET /.well-known/jwks.json",
        as: "anonymous",
        expect: { json: { keys: each({ alg: /^(RS256|ES256)$/, kid: /./, d: absent }) } },
      },
    ],
  },
  {
    anchor: "getting-a-token",
    says: "a person logs in with a browser",
    shownBy: "test/cli/remote/auth/login.test.ts",
    test: "sends the browser to the service and takes what it brings back",
  },
  {
    anchor: "getting-a-token",
    says: "the token is printed whenever it is asked for",
    shownBy: "test/cli/remote/auth/commands.test.ts",
    test: "token prints the token, and renews it when it must",
  },
  {
    anchor: "getting-a-token",
    says: "an identity logs in with its uid and a file with an OIDC token",
    shownBy: "test/cli/remote/auth/login.test.ts",
    test: "exchanges the token and keeps where it came from",
  },
];

/** Token exchange. */
const exchangeRules: readonly Rule[] = [
  {
    anchor: "token-exchange",
    says: "GET /sts/exchange with aud and identity, and the OIDC token as bearer, answers JSON with the API token",
    steps: [
      {
        http: "GET /sts/exchange?aud=<url>&identity=<ci>",
        as: "ciToken",
        expect: {
          json: { token: JWT },
          headers: { "content-type": /^application\/json/, "cache-control": /no-store/ },
        },
        keep: { token: "token" },
      },
      { http: "GET /iam/v2beta1/groups/<shelf>", as: "<token>", expect: { json: { uid: "<shelf>" } } },
    ],
  },
  {
    anchor: "token-exchange",
    says: "the same is SecurityTokenService.Exchange, and the token is good for calls",
    steps: [exchanges, gets("<token>", { result: { uid: "<shelf>" } })],
  },
  {
    anchor: "token-exchange",
    says: "the token is good for almost an hour",
    steps: [exchanges, gets("<token>", { result: { uid: "<shelf>" } }, HOUR_MS - 60_000)],
  },
  {
    anchor: "token-exchange",
    says: "the token is good for no longer than an hour",
    steps: [exchanges, gets("<token>", { code: "UNAUTHENTICATED" }, HOUR_MS + 60_000)],
  },
  {
    anchor: "token-exchange",
    says: "an identity is not assumed with a token that does not match",
    call: exchange,
    as: "otherToken",
    request: { aud: ["<url>"], identity: "<ci>" },
    expect: denial("assuming <ci>"),
  },
  {
    anchor: "token-exchange",
    says: "an identity that does not exist looks the same",
    call: exchange,
    as: "otherToken",
    request: { aud: ["<url>"], identity: "<ghost>" },
    expect: denial("assuming <ghost>"),
  },
  {
    anchor: "token-exchange",
    says: "an expired OIDC token is UNAUTHENTICATED",
    call: exchange,
    as: "tokenAfterExpiry",
    request: { aud: ["<url>"], identity: "<ci>" },
    expect: { code: "UNAUTHENTICATED" },
  },
  {
    anchor: "token-exchange",
    says: "no token is UNAUTHENTICATED",
    call: exchange,
    as: "anonymous",
    request: { aud: ["<url>"], identity: "<ci>" },
    expect: { code: "UNAUTHENTICATED" },
  },
  {
    anchor: "token-exchange",
    says: "a token for other audiences is told so, whether the identity exists or not",
    steps: ["<ci>", "<ghost>"].map((identity) => ({
      call: exchange,
      as: "foreignAudienceToken" as const,
      request: { aud: ["<url>"], identity },
      expect: { code: "PERMISSION_DENIED", message: /aud names none of this service's audiences/ },
    })),
  },
  {
    anchor: "token-exchange",
    says: "aud is an audience of the service",
    call: exchange,
    as: "ciToken",
    request: { aud: ["https://elsewhere.example"], identity: "<ci>" },
    expect: { code: "INVALID_ARGUMENT", message: /aud/ },
  },
  {
    anchor: "token-exchange",
    says: "aud may be repeated, and may list several with commas",
    steps: ["aud=<url>&aud=<url>", "aud=<url>,<url>"].map((aud) => ({
      http: `GET /sts/exchange?${aud}&identity=<ci>`,
      as: "ciToken",
      expect: { json: { token: JWT } },
    })),
  },
  {
    anchor: "token-exchange",
    says: "each of several must be an audience of the service",
    call: exchange,
    as: "ciToken",
    request: { aud: ["<url>", "https://elsewhere.example"], identity: "<ci>" },
    expect: { code: "INVALID_ARGUMENT", message: /aud/ },
  },
  {
    anchor: "token-exchange",
    says: "without an identity the issuer must be one that people log in with",
    call: exchange,
    as: "ciToken",
    request: { aud: ["<url>"] },
    expect: { code: "INVALID_ARGUMENT", message: /identity: name the identity to assume/ },
  },
  {
    anchor: "token-exchange",
    says: "an issuer that cannot be reached is UNAVAILABLE",
    shownBy: "test/issuer/upstream/issuers.test.ts",
    test: "an issuer that is rejected, down or closed is the same error for callers",
  },
  {
    anchor: "token-exchange",
    says: "the token exchange grant of OAuth is the same",
    shownBy: "test/issuer/oauth/token-exchange.test.ts",
    test: "a workload gets a token, narrowed as it asks",
  },
  {
    anchor: "token-exchange",
    says: "exchanges that fail are limited",
    shownBy: "test/issuer/sts/failure-throttle.test.ts",
    test: "failures beyond the limit are slowed to 20 per second, and valid calls pass at once",
  },
  {
    anchor: "token-exchange",
    says: "cap limits what the token may do",
    steps: [
      {
        call: exchange,
        as: "ciToken",
        request: { aud: ["<url>"], identity: "<ci>", cap: ["groups.list"] },
        expect: {},
        keep: { token: "token" },
      },
      gets("<token>", { result: { uid: "<shelf>" } }),
      {
        call: "GetRole",
        as: "<token>",
        request: { uid: "<role>" },
        expect: denial("roles.list at <role>"),
      },
    ],
  },
  {
    anchor: "token-exchange",
    says: "scopes limit where the token is good",
    steps: [
      {
        call: exchange,
        as: "ciToken",
        request: { aud: ["<url>"], identity: "<ci>", scopes: ["<shelf>"] },
        expect: {},
        keep: { token: "token" },
      },
      gets("<token>", { result: { uid: "<shelf>" } }),
      { call: "GetGroup", as: "<token>", request: { uid: "<hall>" }, expect: denial("groups.list at <hall>") },
    ],
  },
];

/** Authorization. */
const authorization: readonly Rule[] = [
  {
    anchor: "authorization",
    says: "a capability holds in the group of the binding and in its descendants",
    call: "GetGroup",
    as: "viewer",
    request: { uid: "<twig>" },
    expect: { result: { uid: "<twig>" } },
  },
  {
    anchor: "authorization",
    says: "it does not hold above",
    call: "GetGroup",
    as: "viewer",
    request: { uid: "<org>" },
    expect: denial("groups.list at <org>"),
  },
  {
    anchor: "authorization",
    says: "it does not hold beside",
    call: "GetGroup",
    as: "viewer",
    request: { uid: "<hall>" },
    expect: denial("groups.list at <hall>"),
  },
  {
    anchor: "authorization",
    says: "a viewer changes nothing",
    call: "CreateRepo",
    as: "viewer",
    request: { parent: "<shelf>", repo: { name: "r" } },
    expect: denial("repo.create at <shelf>"),
  },
  {
    anchor: "authorization",
    says: "an editor changes repos",
    call: "CreateRepo",
    as: "editor",
    request: { parent: "<fresh>", repo: { name: "r" } },
    expect: { result: { name: "r" } },
  },
  {
    anchor: "authorization",
    says: "an editor changes no bindings",
    call: "DeleteRoleBinding",
    as: "editor",
    request: { uid: "<freshBinding>" },
    expect: denial("role_bindings.delete at <freshBinding>"),
  },
  {
    anchor: "authorization",
    says: "what a caller may not see and what does not exist look the same",
    steps: ["<secret>", "<random>"].map((uid) => ({
      call: "GetGroup",
      request: { uid },
      expect: denial(`groups.list at ${uid}`),
    })),
  },
  {
    anchor: "authorization",
    says: "a caller who may read the group is told what does not exist",
    call: "GetRepo",
    as: "viewer",
    request: { uid: "<shelf>/0123456789abcdef" },
    expect: notFound("registry.chainguard.dev/Repo", "<shelf>/0123456789abcdef"),
  },
  {
    anchor: "authorization",
    says: "a method that names no group returns what the caller may see",
    call: "ListIdentities",
    as: "viewer",
    request: {},
    expect: { result: { identities: [], totalCount: "0", nextPageToken: "" } },
  },
  {
    anchor: "authorization",
    says: "every method needs what its proto says",
    shownBy: "test/contract/authorization-matrix.test.ts",
    test: "the authorization matrix",
  },
];

/** Questions about rights. */
const questions: readonly Rule[] = [
  {
    anchor: "questions",
    says: "callers ask about themselves without a capability, and about others with the one that lists bindings",
    shownBy: "test/access/service.test.ts",
    test: "callers ask about themselves without any capability, and about others with role_bindings.list",
  },
  {
    anchor: "questions",
    says: "what lists do not show is left out",
    shownBy: "test/access/service.test.ts",
    test: "the bindings of groups above that the caller does not see are left out",
  },
  {
    anchor: "questions",
    says: "what methods check besides is said in words",
    shownBy: "test/access/method-rules.test.ts",
    test: "every method without a scope has a rule",
  },
];

const sessions: readonly Rule[] = [
  {
    anchor: "sessions",
    says: "a caller lists its sessions, the newest first",
    shownBy: "test/issuer/sessions.test.ts",
    test: "has one for each login that can go on, the newest first, with its limits",
  },
  {
    anchor: "sessions",
    says: "the refresh token of a session that was ended is rejected",
    shownBy: "test/issuer/sessions.test.ts",
    test: "is ended by its owner: the refresh token is rejected, other logins go on, and the log has a row",
  },
  {
    anchor: "sessions",
    says: "a session of somebody else is NOT_FOUND",
    shownBy: "test/issuer/sessions.test.ts",
    test: "of somebody else looks like none, to an owner of the organisation as well, over every protocol",
  },
  {
    anchor: "sessions",
    says: "a limited token gets PERMISSION_DENIED",
    shownBy: "test/issuer/sessions.test.ts",
    test: "is neither shown to a limited token nor ended by it",
  },
  {
    anchor: "sessions",
    says: "a refresh token ends its session",
    shownBy: "test/issuer/refresh.test.ts",
    test: "is ended by its newest refresh token, and by any before",
  },
];

const revocation: readonly Rule[] = [
  {
    anchor: "revocation",
    says: "people and who may update the identity revoke its tokens, and nobody else",
    shownBy: "test/issuer/revoke-tokens.test.ts",
    test: "is who may update the identity, and people of themselves",
  },
  {
    anchor: "revocation",
    says: "an organisation revokes the tokens of people of its own provider, and of no others",
    shownBy: "test/issuer/revoke-tokens.test.ts",
    test: "are not those of others: people of another provider, of none, and unknown ones are not found",
  },
  {
    anchor: "revocation",
    says: "what is revoked is refused by the next call",
    shownBy: "test/issuer/revoke-tokens.test.ts",
    test: "API tokens, and not those of others",
  },
  {
    anchor: "revocation",
    says: "an unknown id is accepted, and a second time without effect",
    shownBy: "test/issuer/revoke-tokens.test.ts",
    test: "is accepted for an unknown id, and a second time, which leaves no second row",
  },
  {
    anchor: "revocation",
    says: "an empty id is INVALID_ARGUMENT",
    shownBy: "test/issuer/revoke-tokens.test.ts",
    test: "is for ids of tokens: neither empty, nor a token",
  },
  {
    anchor: "revocation",
    says: "the tokens of the last owner are revoked, whose rights stay",
    shownBy: "test/issuer/revoke-tokens.test.ts",
    test: "includes the last owner, who keeps all rights",
  },
];

const trust: readonly Rule[] = [
  {
    anchor: "conditions-and-issuer-guards",
    says: "conditions need all rights of the identity, also to be removed",
    shownBy: "test/issuer/trust.test.ts",
    test: "need all rights of the identity, for adding and for removing",
  },
  {
    anchor: "conditions-and-issuer-guards",
    says: "conditions apply to claim matches and static keys alone",
    shownBy: "test/issuer/trust.test.ts",
    test: "apply to claim matches and static keys alone",
  },
  {
    anchor: "conditions-and-issuer-guards",
    says: "updates of an identity keep its conditions",
    shownBy: "test/issuer/trust.test.ts",
    test: "survive what clients of the published API change",
  },
  {
    anchor: "conditions-and-issuer-guards",
    says: "a claim that is missing, of another type or null satisfies no condition",
    shownBy: "test/issuer/sts/conditions.test.ts",
    test: "null is neither there nor missing",
  },
  {
    anchor: "conditions-and-issuer-guards",
    says: "a guard is that of a root group, by an owner",
    shownBy: "test/issuer/trust.test.ts",
    test: "is that of a root group, by an owner, and keeps what clients of the published API do not see",
  },
  {
    anchor: "conditions-and-issuer-guards",
    says: "an identity that the guard shuts out is not created",
    shownBy: "test/issuer/trust.test.ts",
    test: "allows whole strings and whole origins, not what begins like them",
  },
  {
    anchor: "conditions-and-issuer-guards",
    says: "a token that fails a condition gets the response for an unknown identity",
    shownBy: "test/issuer/trust.test.ts",
    test: "answers as for an unknown identity, and the log names the condition without values",
  },
  {
    anchor: "conditions-and-issuer-guards",
    says: "neither conditions nor guards are set while servers before 1.13 may run",
    shownBy: "test/issuer/trust.test.ts",
    test: "neither conditions nor a guard can be set, and both can be removed",
  },
];

/** Tokens, their exchange, sessions, and authorization. */
export const tokens: readonly Rule[] = [
  ...tokenRules,
  ...sessions,
  ...revocation,
  ...trust,
  ...exchangeRules,
  ...authorization,
  ...questions,
];
