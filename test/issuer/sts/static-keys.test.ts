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

test("issuer and subject are compared byte for byte, and before the keys", async () => {
  for (const claims of [{ iss: `${issuer}/` }, { iss: "https://other.example" }, { sub: subject.toUpperCase() }]) {
    assertNotAssumable(decide(staticKeys(), await sign(claims)));
    assertNotAssumable(decide(staticKeys(), await signElsewhere(claims)));
    assertNotAssumable(decide(staticKeys({ issuerKeys: "keys" }), await sign(claims)));
  }
});

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

test("a token that has expired is rejected", async () => {
  assertUnauthenticated(decide(staticKeys(), await sign({ iat: now - 700, exp: now - 100 })));
});

for (const issuerKeys of ["keys", "null", "[]", "{}", '{"keys":{}}', '{"keys":[]}', '{"keys":[null]}']) {
  test(`with ${issuerKeys} as keys nothing is accepted`, async () => {
    assertUnauthenticated(decide(staticKeys({ issuerKeys }), await sign()));
  });
}

test("without an audience stated the token must be for this service", async () => {
  decide(staticKeys(), await sign({ aud: ["elsewhere", "arbor.example.com"] }))();
  assertUnauthenticated(decide(staticKeys(), await sign({ aud: "elsewhere" })));
});

test("a stated audience replaces those of this service, and is compared byte for byte", async () => {
  const keys = staticKeys({ audiences: ["https://elsewhere.example"] });
  decide(keys, await sign({ aud: ["x", "https://elsewhere.example"] }))();
  assertNotAssumable(decide(keys, await sign({ aud: "https://elsewhere.example/" })));
  assertNotAssumable(decide(keys, await sign()));
});
