// Makes the exchange compute before any signature is proven: identities with
// 64 KiB of keys that are none, and with an issuer pattern that is dear to match,
// and unsigned tokens for them from several addresses.
import { type Attack, Counts, pick, repeat } from "../support/attack.js";
import { post } from "../support/http.js";
import { createUnsignedToken } from "../support/tokens.js";
import { createIdentity, type Target } from "../support/world.js";

const MAX_KEYS_BYTES = 64 * 1024;
const YEAR_MS = 300 * 24 * 3600 * 1000;
const ISSUER = "https://junk.example";
/** The responses that name no internal error. */
const REFUSED: readonly number[] = [400, 401, 403, 429, 503];

interface State {
  /** An identity and an unsigned token for it, each dear in its way. */
  readonly pairs: readonly { readonly identity: string; readonly token: string }[];
}

export const attack: Attack<State> = {
  async prepare(target) {
    const expirationTime = new Date(Date.now() + YEAR_MS).toISOString();
    const staticKeys = (key: (i: number) => object, count: number) => {
      const issuerKeys = keysWithin(JSON.stringify({ keys: Array.from({ length: count }, (_, i) => key(i)) }));
      return { staticKeys: { issuer: ISSUER, subject: "x", issuerKeys, expirationTime } };
    };
    const short = () => ({ kty: "RSA", n: "AQ", e: "Aw" });
    const point = (i: number) => {
      const [x, y] = [i, i + 1].map((byte) => Buffer.alloc(32, byte).toString("base64url"));
      return { kty: "EC", crv: "P-256", x, y };
    };
    const modulus = (i: number) => ({ kty: "RSA", n: Buffer.alloc(1_024, i | 129).toString("base64url"), e: "AQAB" });
    const keys = [short, point, modulus].map((key) => [2_000, 500, 45, 32, 16].map((count) => staticKeys(key, count)));
    const patterns = [105, 70, 35, 15, 5].map((width) => ({
      claimMatch: { issuerPattern: costlyPattern(width), subject: "x" },
    }));
    const plain = createUnsignedToken({ iss: ISSUER, sub: "x", aud: target.url }, "none");
    const long = `${ISSUER}/${"a".repeat(1_000)}`;
    const tokenWithPattern = (issuer: string) => createUnsignedToken({ iss: issuer, sub: "x", aud: target.url });
    const pairs = [
      ...(await Promise.all(keys.map((candidates) => pairOf(target, candidates, plain)))).flat(),
      ...(await pairOf(target, patterns, tokenWithPattern(long))),
      ...(await pairOf(target, patterns, tokenWithPattern(long.slice(0, 255)))),
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

// What the service refuses to store cannot be attacked with: the dearest that it takes.
async function pairOf(target: Target, candidates: readonly object[], token: string) {
  for (const relationship of candidates) {
    const identity = await createIdentity(target.url, target, { name: "dear", ...relationship }).catch(() => undefined);
    if (identity !== undefined) return [{ identity, token }];
  }
  return [];
}

// As many whole entries as fit.
function keysWithin(json: string): string {
  if (json.length <= MAX_KEYS_BYTES) return json;
  const end = json.lastIndexOf("},", MAX_KEYS_BYTES - 8);
  return `${json.slice(0, end)}}]}`;
}

// With 105 it is close to the largest program there ever was; nothing it is held against matches.
function costlyPattern(width: number): string {
  return `https://junk\\.example/${`.{0,${width}}`.repeat(4)}x`;
}
