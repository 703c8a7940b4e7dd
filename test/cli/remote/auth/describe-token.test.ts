import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { describeToken } from "../../../../src/cli/remote/auth/describe-token.js";

const NOW_S = 1_800_000_000;
const HERE = "https://iam.example.com";
const good = { iss: "https://ci.example", sub: "repo:acme/app", aud: HERE, exp: NOW_S + 60, iat: NOW_S };

function encode(part: unknown): string {
  return Buffer.from(JSON.stringify(part)).toString("base64url");
}

const token = (claims: object, header: unknown = { alg: "ES256" }) => `${encode(header)}.${encode(claims)}.SIGNATURE`;
const describeUpstream = (text: string) => describeToken(text, { audience: HERE, isUpstream: true }, NOW_S * 1000);

const notJwt = [
  "does not hold a JWT, which is three parts with dots between them: is it the whole token, and nothing but the token?",
];

describe("what a refused token of the service itself says", () => {
  const use = { audience: HERE, isUpstream: false, issuer: HERE };
  const foreign =
    'has a token of the issuer "https://ci.example", not of this service: exchange it with: arbor auth login --identity UID --identity-token FILE';
  const unsigned = "has a token that this service did not sign, or that was revoked";
  const own = { ...good, iss: HERE };
  const cases: [what: string, claims: object, use: object, faults: readonly string[]][] = [
    ["of another issuer", good, {}, [foreign]],
    ["of another issuer, expired and for another audience", { ...good, exp: 1, aud: "x" }, {}, [foreign]],
    ["with all that it needs", own, {}, [unsigned]],
    ["that the service knows, which names its reason", own, { isVerified: true }, []],
    ["that has expired", { ...own, exp: NOW_S }, {}, ["has a token that expired at 2027-01-15T08:00:00.000Z"]],
    ["of a service that does not say its issuer", own, { issuer: undefined }, []],
  ];
  for (const [what, claims, change, faults] of cases) {
    it(`a token ${what}`, () => {
      assert.deepEqual(describeToken(token(claims), { ...use, ...change }, NOW_S * 1000), faults);
    });
  }
});

describe("what a refused token says of itself", () => {
  const cases: [what: string, text: string, faults: readonly string[]][] = [
    ["nothing", " \n", ["is empty"]],
    ["a word", "secret", notJwt],
    ["three words", "a.b.c", notJwt],
    ["two parts", token(good).split(".").slice(0, 2).join("."), notJwt],
    ["five parts, as of an encrypted token", `${token(good)}.x.y`, notJwt],
    ["no header", token(good, []), notJwt],
    ["JSON", JSON.stringify({ token: token(good) }), notJwt],
    ["expired", token({ ...good, exp: NOW_S }), ["has a token that expired at 2027-01-15T08:00:00.000Z"]],
    [
      "not yet valid",
      token({ ...good, nbf: NOW_S + 3600 }),
      ["has a token that is valid from 2027-01-15T09:00:00.000Z on: is the clock of this machine right?"],
    ],
    [
      "for another audience",
      token({ ...good, aud: ["https://github.com/acme", `${HERE}.evil`] }),
      [
        `has a token with the audience "https://github.com/acme", "${HERE}.evil"; expected is ${HERE}, unless the identity names another`,
      ],
    ],
    [
      "for no audience, without an end",
      token({ iss: "i", sub: "s" }),
      [
        "has a token without the claim exp",
        `has a token with no audience; expected is ${HERE}, unless the identity names another`,
      ],
    ],
    [
      "of another issuer or subject",
      token(good),
      [
        'has a token of the issuer "https://ci.example" with the subject "repo:acme/app": is the identity for exactly these?',
      ],
    ],
    [
      "of a subject as long as an attacker likes",
      token({ ...good, sub: "s".repeat(10_000) }),
      [
        `has a token of the issuer "https://ci.example" with the subject "${"s".repeat(200)}": is the identity for exactly these?`,
      ],
    ],
    ["with claims of other types", token({ ...good, exp: "soon", aud: 1, nbf: 1e300 }), []],
  ];
  for (const [what, text, faults] of cases) {
    it(what, () => {
      const described = describeUpstream(text);
      if (faults.length > 0) assert.deepEqual(described, faults);
      assert.notEqual(described.length, 0);
      assert.doesNotMatch(described.join(), /SIGNATURE|secret|eyJ/);
    });
  }

  it("audiences are compared as the service does: with or without scheme and slash", () => {
    for (const aud of [HERE, `${HERE}/`, "iam.example.com", ["other", HERE]]) {
      assert.match(describeUpstream(token({ ...good, aud })).join(), /^has a token of the issuer/);
    }
    assert.match(describeUpstream(token({ ...good, aud: `${HERE}/v1` })).join(), /expected is/);
  });

  it("an API token without a fault has none", () => {
    const describeOwn = (claims: object) =>
      describeToken(token(claims), { audience: HERE, isUpstream: false }, NOW_S * 1000);
    assert.deepEqual(describeOwn(good), []);
    assert.deepEqual(describeOwn({ ...good, aud: "https://x.example" }), [
      `has a token with the audience "https://x.example"; expected is ${HERE}`,
    ]);
  });
});
