// What the verifier of other issuers' tokens makes of every token of the table.
import assert from "node:assert/strict";
import { test } from "node:test";
import { parseJwks, verifyWithKeys } from "../../../src/issuer/upstream/jwks.js";
import { parseUpstreamToken } from "../../../src/issuer/upstream/token.js";
import { createTokenKit } from "../strangers/token-kit.js";
import { strangeTokens, tokensBeyondHeaders } from "../strangers/tokens.js";
import { goodClaims, headerOf, MAX_LIFE_S, NOW_S, testKey } from "./foreign-issuer.js";
import { isInvalidToken } from "./invalid-token.js";

const key = testKey("ES256", "k1");
const jwks = parseJwks({ keys: [key.publicJwk] });
const kit = createTokenKit({ key: key.privateKey, header: headerOf(key), claims: goodClaims() });

for (const { differs, make, upstream } of [...strangeTokens(), ...tokensBeyondHeaders]) {
  test(`${differs}: ${upstream ?? "accepted"}`, () => {
    const verify = () => verifyWithKeys(parseUpstreamToken(make(kit)), jwks, NOW_S * 1000, MAX_LIFE_S);
    if (upstream === undefined) assert.equal(verify().issuer, "https://issuer.test");
    else assert.throws(verify, isInvalidToken(upstream));
  });
}
