// What docs/api-rules.md says about identities and roles.
import { absent, denial, each, invalid, type Pattern, type Rule, rejects } from "./rule.js";
import type { CallerName } from "./world.js";

const TIME = /^20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{3})?Z$/;
const issuer = "https://issuer.example";

function creates(says: string, identity: object, result: Pattern): Rule {
  return {
    anchor: "identities",
    says,
    call: "CreateIdentity",
    request: { parent: "<fresh>", identity: { name: "bot", ...identity } },
    expect: { result },
  };
}

function buildRejection(says: string, identity: object, field: string | RegExp): Rule {
  return {
    anchor: "identities",
    says,
    call: "CreateIdentity",
    request: { parent: "<fresh>", identity: { name: "bot", ...identity } },
    expect: invalid([field, /./]),
  };
}

// Creates an identity and exchanges a token of the issuer of workloads for it.
function assumes(says: string, match: object, as: CallerName, matches: boolean): Rule {
  return {
    anchor: "identities",
    says,
    steps: [
      {
        call: "CreateIdentity",
        request: { parent: "<fresh>", identity: { name: "bot", claimMatch: { issuer: "<workloads>", ...match } } },
        expect: {},
        keep: { made: "uid" },
      },
      {
        call: "oidc.SecurityTokenService.Exchange",
        as,
        request: { aud: ["<url>"], identity: "<made>" },
        expect: matches ? { result: { token: /./ } } : { code: "PERMISSION_DENIED" },
      },
    ],
  };
}

const MATCH = { issuer: "https://issuer.example.com", subject: "s" };
const AWS = { awsAccount: "123456789012", arn: "arn:aws:sts::123456789012:assumed-role/r/s", userId: "AROA:s" };
const KEYS = { issuer: "https://keys.example", subject: "s", issuerKeys: "keys" };
const RELATIONSHIP = "relationship must be one of claimMatch, staticKeys, awsIdentity, servicePrincipal";
const length = (field: string) => `${field} must be 1 to 1024 characters`;
const matching = (more: object) => ({ claimMatch: { ...MATCH, ...more } });

/** What is wrong with an identity, its field and the rule. */
const wrong: Readonly<Record<string, readonly [identity: object, field: string, rule: string]>> = {
  "with nothing at all": [{ name: "" }, "name", "name must match ^[a-z0-9 ._-]{1,}$: name is required"],
  "with a name in capitals": [{ name: "N", claimMatch: MATCH }, "name", "name must match ^[a-z0-9 ._-]{1,}$"],
  "without a relationship": [{}, "relationship", RELATIONSHIP],
  "without an issuer": [{ claimMatch: { subject: "s" } }, "claimMatch", "claimMatch must have issuer or issuerPattern"],
  "without a subject": [{ claimMatch: { issuer } }, "claimMatch", "claimMatch must have subject or subjectPattern"],
  "with an empty subject": [matching({ subject: "" }), "claimMatch", length("claimMatch.subject")],
  "with a subject of two lines": [
    matching({ subject: "a\nb" }),
    ...(["claimMatch", "claimMatch.subject must not contain control characters"] as const),
  ],
  "with a subject too long": [matching({ subject: "s".repeat(1025) }), "claimMatch", length("claimMatch.subject")],
  "with an empty audience": [matching({ audience: "" }), "claimMatch", length("claimMatch.audience")],
  "with an empty claim": [matching({ claims: { a: "" } }), "claimMatch", length("claimMatch.claims.a")],
  "with a claim pattern that is not one": [
    matching({ claimPatterns: { a: "(" } }),
    ...(["claimMatch", "claimMatch.claimPatterns.a must be a regular expression in RE2 syntax"] as const),
  ],
  "with 33 claims": [
    matching({ claims: Object.fromEntries(Array.from({ length: 33 }, (_, i) => [`c${i}`, "x"])) }),
    ...(["claimMatch", "claimMatch.claims must be at most 32"] as const),
  ],
  "without keys": [
    { staticKeys: { ...KEYS, issuerKeys: "" } },
    ...(["staticKeys", "staticKeys.issuerKeys is required"] as const),
  ],
  "with two audiences of keys": [
    { staticKeys: { ...KEYS, audiences: ["a", "b"] } },
    ...(["staticKeys", "staticKeys.audiences must be at most one"] as const),
  ],
  "with an account of 11 digits": [
    { awsIdentity: { ...AWS, awsAccount: "12345678901" } },
    ...(["awsIdentity", "awsIdentity.awsAccount must be 12 digits"] as const),
  ],
  "without an ARN": [
    { awsIdentity: { awsAccount: "123456789012", userId: "u" } },
    ...(["awsIdentity", "awsIdentity must have arn or arnPattern"] as const),
  ],
  "without a user id": [
    { awsIdentity: { awsAccount: "123456789012", arn: "a" } },
    ...(["awsIdentity", "awsIdentity must have userId or userIdPattern"] as const),
  ],
  "with an unspecified component": [
    { servicePrincipal: "SERVICE_PRINCIPAL_UNSPECIFIED" },
    ...(["servicePrincipal", "servicePrincipal must name a service principal"] as const),
  ],
};

const TO_OR_FROM = "relationship cannot change to or from staticKeys and servicePrincipal";

// What an update names, and the field and the rule that it breaks; the identity stays as it was.
function rejectsUpdate(
  what: string,
  identity: object,
  updateMask: string | undefined,
  [field, rule]: readonly [string, string],
  from: object = { claimMatch: MATCH },
): Rule {
  const query = updateMask === undefined ? "" : `?updateMask=${updateMask}`;
  const read = { call: "GetIdentity", request: { uid: "<made>" } };
  return {
    anchor: "identities",
    says: `an update of an identity with ${what} is rejected, and changes nothing`,
    steps: [
      {
        call: "CreateIdentity",
        request: { parent: "<fresh>", identity: { name: "n", ...from } },
        expect: {},
        keep: { made: "uid", at: "updateTime" },
      },
      { http: `PATCH /iam/v2beta1/identities/<made>${query}`, body: identity, expect: invalid([field, rule]) },
      { ...read, expect: { result: { name: "n", ...from, updateTime: "<at>" } } },
    ],
  };
}

const rejections: readonly Rule[] = [
  ...Object.entries(wrong).map(([what, [identity, field, rule]]) =>
    rejects(`an identity ${what} is rejected`, {
      anchor: "identities",
      call: "CreateIdentity",
      request: { parent: "<fresh>", identity: { name: "n", ...identity } },
      violations: [[field, rule]],
    }),
  ),
  rejectsUpdate("a part of claims that is not one", {}, "claimMatch.nosuch", [
    ...(["updateMask", "updateMask: claim_match.nosuch is not a field of an identity"] as const),
  ]),
  rejectsUpdate("everything but a name", { claimMatch: MATCH }, "*", [
    ...(["name", "name must match ^[a-z0-9 ._-]{1,}$: name is required"] as const),
  ]),
  rejectsUpdate("no claims", {}, "claimMatch", ["relationship", RELATIONSHIP]),
  rejectsUpdate("keys instead of claims", { staticKeys: KEYS }, undefined, ["relationship", TO_OR_FROM]),
  rejectsUpdate("a component instead of claims", { servicePrincipal: "SERVICE_PRINCIPAL_INGESTER" }, undefined, [
    "relationship",
    TO_OR_FROM,
  ]),
  rejectsUpdate("claims instead of keys", { claimMatch: MATCH }, undefined, ["relationship", TO_OR_FROM], {
    staticKeys: KEYS,
  }),
];

/** Identities and roles. */
const whoAmI = {
  as: "freshPerson",
  call: "auth.Auth.Validate",
  request: {},
  expect: {},
  keep: { me: "subject" },
} as const;

export const identities: readonly Rule[] = [
  {
    anchor: "people",
    says: "a person reads and renames its own identity, in any letters",
    steps: [
      whoAmI,
      {
        as: "freshPerson",
        call: "UpdateIdentity",
        request: { identity: { uid: "<me>", name: "Ада Lovelace" }, updateMask: "name" },
        expect: { result: { uid: "<me>", name: "Ада Lovelace" } },
      },
      {
        as: "freshPerson",
        call: "GetIdentity",
        request: { uid: "<me>" },
        expect: { result: { name: "Ада Lovelace" } },
      },
    ],
  },
  {
    anchor: "people",
    says: "nobody else reads or renames it",
    steps: [
      whoAmI,
      { call: "GetIdentity", request: { uid: "<me>" }, expect: denial("identity.list at <me>") },
      {
        call: "UpdateIdentity",
        request: { identity: { uid: "<me>", name: "m" }, updateMask: "name" },
        expect: denial("identity.update at <me>"),
      },
    ],
  },
  {
    anchor: "people",
    says: "a person changes nothing else of it",
    steps: [
      whoAmI,
      {
        as: "freshPerson",
        call: "UpdateIdentity",
        request: { identity: { uid: "<me>", claimMatch: { issuer, subject: "x" } }, updateMask: "claimMatch" },
        expect: invalid([/^claim(M|_m)atch$/, /people change their name alone$/]),
      },
    ],
  },
  {
    anchor: "people",
    says: "a limited token does not reach it",
    shownBy: "test/iam/people/own-identity.test.ts",
    test: "reads and renames nobody else, nor does anybody with a limited token",
  },
  creates(
    "a new identity has a uid, what was given, and the times of creation, change and last use",
    { description: "d", claimMatch: { issuer, subject: "s" } },
    {
      uid: /^<fresh>\/[0-9a-f]{16}$/,
      name: "bot",
      description: "d",
      claimMatch: { issuer, subject: "s" },
      lastSeenTime: TIME,
      createTime: TIME,
      updateTime: TIME,
    },
  ),
  creates(
    "a claim match may have patterns, an audience and claims",
    {
      claimMatch: {
        issuerPattern: "https://issuer\\.example/.*",
        subjectPattern: "repo:.*",
        audience: "other",
        claims: { ref: "main" },
        claimPatterns: { actor: ".*" },
      },
    },
    { claimMatch: { subjectPattern: "repo:.*", audience: "other", claims: { ref: "main" }, issuer: absent } },
  ),
  {
    ...creates(
      "a pattern may be anchored",
      { claimMatch: { issuerPattern: "^https://accounts\\.example$", subject: "s" } },
      { claimMatch: { issuerPattern: "^https://accounts\\.example$" } },
    ),
  },
  creates(
    "an identity may be assumed with keys that are stored with it",
    {
      staticKeys: {
        issuer,
        subject: "s",
        issuerKeys:
          '{"keys":[{"kty":"EC","crv":"P-256","kid":"k","x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU","y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"}]}',
      },
    },
    { staticKeys: { issuer, subject: "s", expirationTime: TIME } },
  ),
  creates(
    "an identity may be assumed by a user or role of AWS",
    { awsIdentity: { awsAccount: "123456789012", arnPattern: "arn:aws:sts::123456789012:.*", userIdPattern: ".*" } },
    { awsIdentity: { awsAccount: "123456789012" } },
  ),
  buildRejection(
    "an issuer pattern has a literal host",
    { claimMatch: { issuerPattern: ".*", subject: "s" } },
    /^claim_?[mM]atch/,
  ),
  buildRejection("an issuer is a URL", { claimMatch: { issuer: "issuer", subject: "s" } }, /^claim_?[mM]atch/),
  ...rejections,
  {
    anchor: "identities",
    says: "the form over REST: an empty description, a claimMatch of issuer and subject, and no other empty fields",
    http: "GET /iam/v2beta1/identities/<ci>",
    expect: {
      text: new RegExp(
        '^\\{"uid":"<ci>","name":"identity","description":"",("[a-zA-Z]+Time":"[^"]+",){3}' +
          '"claimMatch":\\{"issuer":"<workloads>","subject":"ci"\\}\\}$',
      ),
    },
  },
  {
    anchor: "identities",
    says: "over REST claims and company are there where they are not empty, in all versions",
    http: "POST /iam/v2/identities/<fresh>",
    body: { name: "bot", company: "Acme", claimMatch: { issuer, subject: "s", claims: { ref: "main" } } },
    expect: {
      json: { company: "Acme", email: absent, claimMatch: { claims: { ref: "main" }, claimPatterns: absent } },
    },
  },
  {
    anchor: "identities",
    says: "identities are filtered by the kind of their relationship",
    call: "ListIdentities",
    request: { uidp: { ids: ["<ci>", "<self>"] }, relationshipType: "RELATIONSHIP_TYPE_CLAIM_MATCH" },
    expect: { result: { identities: [{ uid: "<ci>" }], totalCount: "1" } },
  },

  assumes("an identity is assumed by a token that matches its pattern", { subjectPattern: "c." }, "ciToken", true),
  assumes("a pattern matches the whole value", { subjectPattern: "c" }, "ciToken", false),
  assumes("every claim must match", { subject: "ci", claims: { ref: "main" } }, "ciToken", false),
  assumes(
    "without an audience of its own it needs a token for this service",
    { subject: "ci" },
    "foreignAudienceToken",
    false,
  ),
  assumes(
    "with an audience of its own it needs a token for that",
    { subject: "ci", audience: "https://elsewhere.example" },
    "foreignAudienceToken",
    true,
  ),

  {
    anchor: "roles",
    says: "what a built-in role has gained does not count when it is granted",
    shownBy: "test/iam/escalation.test.ts",
    test: "grant the built-in role, with one capability less not",
  },
  {
    anchor: "roles",
    says: "there is a built-in role viewer, whose description tells that it is built in",
    call: "ListRoles",
    request: { name: "viewer" },
    expect: {
      result: { roles: [{ uid: "<viewerRole>", name: "viewer", description: /\(built-in\)$/ }], totalCount: "1" },
    },
  },
  {
    anchor: "roles",
    says: "the uid of viewer is the published one",
    http: "GET /iam/v2beta1/roles?name=viewer",
    expect: { json: { roles: [{ uid: "63921b2c44617e3f2603851537be0123af4a57d7" }] } },
  },
  {
    anchor: "roles",
    says: "built-in roles are visible to everybody",
    call: "ListRoles",
    as: "nobody",
    request: { uidp: { inRoot: true }, pageSize: 200 },
    expect: { result: { roles: each({ uid: /^[0-9a-f]{40}$/, description: /\(built-in\)$/ }) } },
  },
  {
    anchor: "roles",
    says: "a built-in role is changed by nobody",
    call: "UpdateRole",
    request: { role: { uid: "<viewerRole>", description: "mine" } },
    expect: denial("roles.update at <viewerRole>"),
  },
  {
    anchor: "roles",
    says: "a custom role has its capabilities",
    call: "GetRole",
    request: { uid: "<role>" },
    expect: { result: { name: "one", capabilities: ["CAP_IAM_GROUPS_LIST"], createTime: /Z$/, updateTime: /Z$/ } },
  },
  ...Object.entries<readonly [role: object, field: string, rule: string]>({
    "no capability": [{ capabilities: [] }, "capabilities", "capabilities must name at least one capability"],
    "no name": [{ name: "" }, "name", "name must match ^[a-z0-9 ._-]{1,}$: name is required"],
    "the capability unknown": [
      { capabilities: ["UNKNOWN"] },
      ...(["capabilities", "capabilities must name capabilities that exist"] as const),
    ],
    "a description of two lines": [
      { description: "a\nb" },
      ...(["description", "description must not contain control characters"] as const),
    ],
  }).map(([what, [role, field, rule]]) =>
    rejects(`a role with ${what} is rejected`, {
      anchor: "roles",
      call: "CreateRole",
      request: { parent: "<fresh>", role: { name: "r", capabilities: ["CAP_IAM_GROUPS_LIST"], ...role } },
      violations: [[field, rule]],
    }),
  ),
  {
    anchor: "roles",
    says: "a custom role is bound in its group and in descendants",
    steps: [
      {
        call: "CreateRoleBinding",
        made: ["<freshChild>"],
        request: { parent: "<freshChild>", roleBinding: { identityUid: "<freshIdentity>", roleUid: "<freshRole>" } },
        expect: { result: { role: { uid: "<freshRole>" } } },
      },
    ],
  },
  {
    anchor: "roles",
    says: "a custom role is not bound elsewhere",
    call: "CreateRoleBinding",
    request: { parent: "<freshOther>", roleBinding: { identityUid: "<freshPerson>", roleUid: "<freshRole>" } },
    expect: invalid([/^role_?[uU]id$/, /./]),
  },
  {
    anchor: "roles",
    says: "a change of a role takes effect at once",
    steps: [
      {
        call: "CreateRole",
        request: { parent: "<fresh>", role: { name: "r", capabilities: ["CAP_IAM_ROLES_LIST"] } },
        expect: {},
        keep: { made: "uid" },
      },
      {
        call: "CreateRoleBinding",
        request: { parent: "<fresh>", roleBinding: { identityUid: "<freshPerson>", roleUid: "<made>" } },
        expect: {},
      },
      {
        call: "GetGroup",
        as: "freshPerson",
        request: { uid: "<fresh>" },
        expect: denial("groups.list at <fresh>"),
      },
      {
        call: "UpdateRole",
        request: { role: { uid: "<made>", capabilities: ["CAP_IAM_GROUPS_LIST"] } },
        expect: { result: { capabilities: ["CAP_IAM_GROUPS_LIST"] } },
      },
      { call: "GetGroup", as: "freshPerson", request: { uid: "<fresh>" }, expect: { result: { uid: "<fresh>" } } },
    ],
  },
  {
    anchor: "roles",
    says: "nobody grants what it does not hold, by a role, a binding, an invite, a mapping or a default role",
    shownBy: "test/iam/escalation.test.ts",
    test: "* with more is rejected, and changes nothing",
  },
  {
    anchor: "roles",
    says: "nobody puts a capability into a role that it does not hold itself",
    call: "CreateRole",
    request: { parent: "<fresh>", role: { name: "r", capabilities: ["CAP_INTERNAL"] } },
    expect: { code: "PERMISSION_DENIED" },
  },
];
