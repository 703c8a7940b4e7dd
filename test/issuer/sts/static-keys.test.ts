import assert from "node:assert/strict";
import { before, test } from "node:test";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { exportJWK, generateKeyPair, type JWK, type JWTPayload, SignJWT } from "jose";
import {
  type Identity_StaticKeys,
  Identity_StaticKeysSchema,
} from "#gen/chainguard/platform/iam/v2beta1/identities_pb.js";
import { MAX_PASSWORD_LIFE_S, verifyStaticKeys } from "../../../src/issuer/sts/static-keys.js";
import { type ParsedToken, parseUpstreamToken } from "../../../src/issuer/upstream/token.js";
import { audienceEdits, EDITABLE, issuerEdits, textEdits, unequalTexts } from "../strangers/texts.js";
import { farTimes, wrongTimes } from "../strangers/times.js";
import { assertNotAssumable, assertUnauthenticated, issuer, ownUrls, subject, uid } from "./tokens.js";

const nowMs = Date.UTC(2026, 0, 15);
const now = nowMs / 1000;
let jwks: { keys: JWK[] };
let sign: (claims?: JWTPayload) => Promise<ParsedToken>;
let signElsewhere: typeof sign;

before(async () => {
  const signer = async () => {
    const { publicKey, privateKey } = await generateKeyPair("ES256");
    const jwk: JWK = { ...(await exportJWK(publicKey)), kid: "one" };
    const make = async (claims: JWTPayload = {}) => {
      const all = { iss: issuer, sub: subject, aud: ownUrls[0] ?? "", iat: now, exp: now + 600, ...claims };
      const text = await new SignJWT(all).setProtectedHeader({ alg: "ES256", kid: "one" }).sign(privateKey);
      return parseUpstreamToken(text);
    };
    return { jwk, make };
  };
  const [ours, theirs] = [await signer(), await signer()];
  jwks = { keys: [ours.jwk] };
  sign = ours.make;
  signElsewhere = theirs.make;
});

function staticKeys(values: MessageInitShape<typeof Identity_StaticKeysSchema> = {}): Identity_StaticKeys {
  const expirationTime = timestampFromMs(nowMs + 1);
  const issuerKeys = JSON.stringify(jwks);
  return create(Identity_StaticKeysSchema, { issuer, subject, issuerKeys, expirationTime, ...values });
}

const DAY_S = 24 * 3600;
const decide = (keys: Identity_StaticKeys, token: ParsedToken) => () =>
  verifyStaticKeys(keys, token, ownUrls, uid, nowMs, DAY_S);

test("a token signed with the keys of the identity is accepted", async () => {
  const token = verifyStaticKeys(staticKeys(), await sign(), ownUrls, uid, nowMs, DAY_S);
  assert.deepEqual([token.issuer, token.subject, token.expiresAt], [issuer, subject, now + 600]);
});

test("a password may live as long as keys may, and no second more; other tokens as long as is allowed", async () => {
  const year = MAX_PASSWORD_LIFE_S;
  const asPassword = (keys: Identity_StaticKeys, token: ParsedToken) => () =>
    verifyStaticKeys(keys, token, ownUrls, uid, nowMs, MAX_PASSWORD_LIFE_S);
  assert.equal(asPassword(staticKeys(), await sign({ exp: now + year }))().expiresAt, now + year);
  assertUnauthenticated(asPassword(staticKeys(), await sign({ exp: now + year + 1 })));
  const over = staticKeys({ expirationTime: timestampFromMs(nowMs) });
  assertUnauthenticated(asPassword(over, await sign({ exp: now + year })));
  assertUnauthenticated(decide(staticKeys(), await sign({ exp: now + DAY_S + 1 })));
});

const strangers = [
  ...Object.entries(issuerEdits).map(([differs, edit]) => ({
    differs: `iss: ${differs}`,
    claims: { iss: edit(issuer) },
  })),
  ...Object.entries(textEdits).map(([differs, edit]) => ({
    differs: `sub: ${differs}`,
    claims: { sub: edit(EDITABLE) },
  })),
];

for (const { differs, claims } of strangers) {
  test(`issuer and subject are compared byte for byte, and before the keys: ${differs}`, async () => {
    const keys = { subject: "sub" in claims ? EDITABLE : subject };
    for (const token of [await sign(claims), await signElsewhere(claims)]) {
      assertNotAssumable(decide(staticKeys(keys), token));
      assertNotAssumable(decide(staticKeys({ ...keys, issuerKeys: "keys" }), token));
    }
  });
}

test("a token signed with another key of the same key id is rejected", async () => {
  assertUnauthenticated(decide(staticKeys(), await signElsewhere()));
});

test("keys are valid until they expire, to the millisecond", async () => {
  const token = await sign();
  decide(staticKeys({ expirationTime: timestampFromMs(nowMs + 1) }), token)();
  assertUnauthenticated(decide(staticKeys({ expirationTime: timestampFromMs(nowMs) }), token));
  assertUnauthenticated(decide(staticKeys({ expirationTime: timestampFromMs(nowMs - 1) }), token));
  const unlimited = staticKeys();
  delete unlimited.expirationTime;
  assertUnauthenticated(decide(unlimited, token));
});

for (const { differs, make } of [...wrongTimes, ...farTimes]) {
  test(`a token that ${differs} is rejected`, async () => {
    const times = make(now, 1, { leewayS: 60, maxLifeS: DAY_S });
    assertUnauthenticated(decide(staticKeys(), await sign(times as JWTPayload)));
  });
}

for (const issuerKeys of ["keys", "null", "[]", "{}", '{"keys":{}}', '{"keys":[]}', '{"keys":[null]}']) {
  test(`with ${issuerKeys} as keys nothing is accepted`, async () => {
    assertUnauthenticated(decide(staticKeys({ issuerKeys }), await sign()));
  });
}

test("without an audience stated the token must be for this service", async () => {
  decide(staticKeys(), await sign({ aud: ["elsewhere", "arbor.example.com"] }))();
  for (const edit of Object.values(audienceEdits)) {
    assertUnauthenticated(decide(staticKeys(), await sign({ aud: edit(ownUrls[0] ?? "") })));
  }
});

test("a stated audience replaces those of this service, and is compared byte for byte", async () => {
  for (const { stated, given } of unequalTexts) {
    const keys = staticKeys({ audiences: [stated] });
    decide(keys, await sign({ aud: ["x", stated] }))();
    assertNotAssumable(decide(keys, await sign({ aud: given })));
  }
  const keys = staticKeys({ audiences: ["https://elsewhere.example"] });
  assertNotAssumable(decide(keys, await sign()));
});
