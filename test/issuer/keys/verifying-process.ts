// A relying party: verifies the tokens given on standard input, one per line, with the public keys of a URL, and answers
// each with a line.
//   node --import tsx verifying-process.ts JWKS_URL MAX_AGE_MS ISSUER
import { createInterface } from "node:readline";
import { createRemoteJWKSet, errors, jwtVerify } from "jose";

const [url = "", maxAgeMs = "", issuer = ""] = process.argv.slice(2);
// jose ignores Cache-Control, so max-age is applied here: keys are cached for max-age and then fetched again. Within
// it even an unknown kid causes no request, because the cooldown is as long: a shorter one would hide a key that is
// used before it is published, which this process must notice.
const keys = createRemoteJWKSet(new URL(url), { cacheMaxAge: Number(maxAgeMs), cooldownDuration: Number(maxAgeMs) });

for await (const token of createInterface({ input: process.stdin })) {
  let response = "accepted";
  try {
    await jwtVerify(token, keys, { issuer, audience: issuer, typ: "at+jwt", algorithms: ["ES256"] });
  } catch (error) {
    response = error instanceof errors.JOSEError ? `rejected ${error.code}` : `failed ${error}`;
  }
  process.stdout.write(`${response}\n`);
}
