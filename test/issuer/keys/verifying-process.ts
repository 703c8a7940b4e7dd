// Somebody else who trusts the tokens: verifies those given on standard input,
// one per line, with the public keys of a URL, and answers each with a line.
//   node --import tsx verifying-process.ts JWKS_URL MAX_AGE_MS ISSUER
import { createInterface } from "node:readline";
import { createRemoteJWKSet, errors, jwtVerify } from "jose";

const [url = "", maxAgeMs = "", issuer = ""] = process.argv.slice(2);
// jose knows nothing of Cache-Control, so it is told here what the answer says: keys are kept for
// max-age and then asked for again. Within it even an unknown kid is no reason to ask, since the
// cooldown is as long; with a shorter one the client would forgive a key that is used before others
// can know it, which is what it is here to notice.
const keys = createRemoteJWKSet(new URL(url), { cacheMaxAge: Number(maxAgeMs), cooldownDuration: Number(maxAgeMs) });

for await (const token of createInterface({ input: process.stdin })) {
  let answer = "accepted";
  try {
    await jwtVerify(token, keys, { issuer, audience: issuer, typ: "at+jwt", algorithms: ["ES256"] });
  } catch (error) {
    answer = error instanceof errors.JOSEError ? `refused ${error.code}` : `failed ${error}`;
  }
  process.stdout.write(`${answer}\n`);
}
