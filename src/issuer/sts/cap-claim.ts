// The `cap` claim: the capabilities of the bearer at each group when the token was issued. It is for readers of the
// token; no decision uses it.
import { LRUCache } from "lru-cache";
import { bitsOf, type CapabilitySet, unionOf } from "../../kernel/capability-set.js";
import type { Grant as Held } from "../../pipeline/auth/caller.js";

/** The largest number of groups in the claim; beyond it the claim is left out, so that tokens stay small. */
const MAX_GROUPS = 16;

/**
 * Builds the claim: encoded sets by the uid of the group; undefined where there are none or too many. Readers cannot see when
 * a grant ends, so those that end before the token expires are left out.
 *
 * @param expireTimeMs when the token expires, in epoch milliseconds
 */
export function buildCapClaim(grants: readonly Held[], expireTimeMs: number): Record<string, string> | undefined {
  const sets = new Map<string, CapabilitySet[]>();
  for (const { groupUid, capabilities, endTimeMs } of grants) {
    if (endTimeMs !== null && endTimeMs < expireTimeMs) continue;
    const known = sets.get(groupUid);
    if (known) known.push(capabilities);
    else sets.set(groupUid, [capabilities]);
  }
  if (sets.size === 0 || sets.size > MAX_GROUPS) return undefined;
  return Object.fromEntries([...sets].map(([groupUid, all]) => [groupUid, encodeSet(mergeSets(all))]));
}

function mergeSets(sets: readonly CapabilitySet[]): CapabilitySet {
  const [first = "", ...more] = sets;
  return more.length === 0 ? first : unionOf(sets);
}

/** The encoded sets of roles, of which there are few. */
const encodedSets = new LRUCache<CapabilitySet, string>({ max: 500 });

// The format of published clients in base64url: the length in bits, then words of 64 bits, highest bit first.
function encodeSet(set: CapabilitySet): string {
  const known = encodedSets.get(set);
  if (known !== undefined) return known;
  const bits = bitsOf(set);
  const length = (bits.at(-1) ?? -1) + 1;
  const bytes = Buffer.alloc(8 + 8 * Math.ceil(length / 64));
  bytes.writeBigUInt64BE(BigInt(length));
  for (const bit of bits) {
    const at = 8 + 8 * (bit >> 6) + 7 - ((bit & 63) >> 3);
    bytes.writeUInt8(bytes.readUInt8(at) | (1 << (bit & 7)), at);
  }
  const text = bytes.toString("base64url");
  encodedSets.set(set, text);
  return text;
}
