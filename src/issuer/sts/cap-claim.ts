// The `cap` claim: what the bearer of a token may do at which group when it was
// issued, for those who read tokens. Nothing here decides on it.
import { LRUCache } from "lru-cache";
import { bitsOf, type CapabilitySet, unionOf } from "../../kernel/capability-set.js";
import type { Grant as Held } from "../../pipeline/auth/grants.js";

/** With more groups than this the claim is left out, so that tokens stay small. */
const MAX_GROUPS = 16;

/** The claim: sets by the uid of the group; undefined where there is nothing to tell or too much. */
export function capClaim(grants: readonly Held[]): Record<string, string> | undefined {
  const sets = new Map<string, CapabilitySet[]>();
  for (const { groupUid, capabilities } of grants) {
    const known = sets.get(groupUid);
    if (known) known.push(capabilities);
    else sets.set(groupUid, [capabilities]);
  }
  if (sets.size === 0 || sets.size > MAX_GROUPS) return undefined;
  return Object.fromEntries([...sets].map(([groupUid, all]) => [groupUid, encoded(oneOf(all))]));
}

function oneOf(sets: readonly CapabilitySet[]): CapabilitySet {
  const [first = "", ...more] = sets;
  return more.length === 0 ? first : unionOf(sets);
}

/** Of the sets of roles, of which there are few, how each is written. */
const written = new LRUCache<CapabilitySet, string>({ max: 500 });

// How published clients read a set: its length in bits and its words, each 64 bits with the highest
// first, in base64url.
function encoded(set: CapabilitySet): string {
  const known = written.get(set);
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
  written.set(set, text);
  return text;
}
