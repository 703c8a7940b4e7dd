// Makes the exchange compute before any signature is proven: identities with
// 64 KiB of keys that are none, and with an issuer pattern that is dear to match,
// and unsigned tokens for them from several addresses.
import { type Attack, Counts, pick, repeat } from "../support/attack.js";
import { post } from "../support/http.js";
import { unsignedToken } from "../support/tokens.js";
import { createIdentity, type Target } from "../support/world.js";

const MAX_KEYS_BYTES = 64 * 1024;
const YEAR_MS = 300 * 24 * 3600 * 1000;
const ISSUER = "https://junk.example";
/** The answers that name no internal error. */
const REFUSED: readonly number[] = [400, 401, 403, 429, 503];

interface State {
  /** An identity and an unsigned token for it, each dear in its way. */
  readonly pairs: readonly { readonly identity: string; readonly token: string }[];
}

export const attack: Attack<State> = {
  async prepare(target) {
    const keys = JSON.stringify({ keys: Array.from({ length: 2_000 }, () => ({ kty: "RSA", n: "AQ", e: "Aw" })) });
    const points = JSON.stringify({
      keys: Array.from({ length: 500 }, (_, i) => ({
        kty: "EC",
        crv: "P-256",
        x: Buffer.alloc(32, i).toString("base64url"),
        y: Buffer.alloc(32, i + 1).toString("base64url"),
      })),
    });
    const expirationTime = new Date(Date.now() + YEAR_MS).toISOString();
    const staticKeys = (issuerKeys: string) => ({
      staticKeys: { issuer: ISSUER, subject: "x", issuerKeys: issuerKeys.slice(0, MAX_KEYS_BYTES), expirationTime },
    });
    const plain = unsignedToken({ iss: ISSUER, sub: "x", aud: target.url });
    const long = `${ISSUER}/${"a".repeat(1_000)}`;
    const patterned = { claimMatch: { issuerPattern: costlyPattern(), subject: "x" } };
    const pairs = [
      ...(await pairOf(target, staticKeys(keysWithin(keys)), plain)),
      ...(await pairOf(target, staticKeys(keysWithin(points)), plain)),
      ...(await pairOf(target, patterned, unsignedToken({ iss: long, sub: "x", aud: target.url }))),
      ...(await pairOf(target, patterned, unsignedToken({ iss: long.slice(0, 255), sub: "x", aud: target.url }))),
    ];
    return { pairs };
  },

  async run({ url, addresses }, stop, { pairs }) {
    const counts = new Counts();
    if (pairs.length === 0) counts.problem("no identity could be made to attack");
    await repeat({ ms: 50, width: 2, limit: 10_000, stop }, async (n) => {
      const { identity, token } = pick(pairs, n);
      const path = `/sts/exchange?aud=${encodeURIComponent(url)}&identity=${encodeURIComponent(identity)}`;
      const headers = { authorization: `Bearer ${token}` };
      const status = await post(url, path, pick(addresses, n), Buffer.alloc(0), headers);
      if (stop.aborted) return;
      counts.add(`HTTP ${status}`);
      if (!REFUSED.includes(status)) counts.problem(`an unsigned token is answered HTTP ${status}`);
    });
    return counts;
  },
};

// What the service refuses to store cannot be attacked with.
async function pairOf(target: Target, relationship: object, token: string) {
  const identity = await createIdentity(target.url, target, { name: "dear", ...relationship }).catch(() => undefined);
  return identity === undefined ? [] : [{ identity, token }];
}

// As many whole entries as fit.
function keysWithin(json: string): string {
  if (json.length <= MAX_KEYS_BYTES) return json;
  const end = json.lastIndexOf("},", MAX_KEYS_BYTES - 8);
  return `${json.slice(0, end)}}]}`;
}

// Close to the largest program that is allowed; nothing it is held against matches.
function costlyPattern(): string {
  return `https://junk\\.example/${".{0,105}".repeat(4)}x`;
}
