// What the rows of the keys say, with the keys in them opened.
import type { JsonWebKey } from "node:crypto";
import type { PageKey } from "../../kernel/page-token.js";
import type { SigningKey } from "../../pipeline/auth/api-token.js";
import type { KeyRow } from "../../store/port.js";
import { type KeyPair, keyPairOf, type SigningPurpose, secretOf } from "./key-making.js";
import type { MasterKey } from "./master-key.js";

/** The keys as they were found at one look. */
export interface KeyView {
  readonly rows: readonly KeyRow[];
  readonly apiToken: SigningKeys;
  readonly audit: SigningKeys;
  readonly registry: SigningKeys;
  /** The first seals, all open. */
  readonly pageKeys: readonly PageKey[];
  /** The public keys of API tokens, newest first. */
  readonly published: readonly JsonWebKey[];
}

/** The keys of one purpose. */
export interface SigningKeys {
  /** The one in use. */
  readonly signing: SigningKey;
  /** All of them by their kid, oldest first. */
  readonly pairs: ReadonlyMap<string, OpenedKey>;
}

/** Both halves of a key, and what they were opened from. */
export interface OpenedKey extends KeyPair {
  readonly sealed: string;
}

/**
 * Opens the keys of `rows`.
 *
 * @param rows oldest first
 * @param before an earlier view: what stands in it keeps its objects, so that tokens verified with
 * them stay remembered
 * @throws Error when a key was not sealed with this master key, or none of a purpose is in use.
 */
export function viewOf(rows: readonly KeyRow[], masterKey: MasterKey, before?: KeyView): KeyView {
  if (before !== undefined && statesOf(rows) === statesOf(before.rows)) return { ...before, rows };
  const apiToken = signingKeys("api-token", rows, masterKey, before?.apiToken);
  const audit = signingKeys("audit", rows, masterKey, before?.audit);
  const registry = signingKeys("registry", rows, masterKey, before?.registry);
  return { rows, apiToken, audit, registry, pageKeys: pageKeysIn(rows, masterKey), published: publicKeysOf(apiToken) };
}

/** Which keys there are in which states, as text to compare. */
export function statesOf(rows: readonly KeyRow[]): string {
  return rows.map(({ kid, state, sealed }) => `${kid} ${state} ${sealed}`).join();
}

function signingKeys(
  purpose: SigningPurpose,
  rows: readonly KeyRow[],
  masterKey: MasterKey,
  before: SigningKeys | undefined,
): SigningKeys {
  const pairs = new Map<string, OpenedKey>();
  let signing: SigningKey | undefined;
  for (const row of rows) {
    if (row.purpose !== purpose) continue;
    const { kid, sealed, state } = row;
    const known = before?.pairs.get(kid);
    const pair = known?.sealed === sealed ? known : { ...keyPairOf(row, masterKey), sealed };
    pairs.set(kid, pair);
    if (state === "active") signing = { kid, key: pair.privateKey };
  }
  if (signing === undefined) throw new Error(`no key in use signs ${purpose}`);
  return { signing, pairs };
}

function pageKeysIn(rows: readonly KeyRow[], masterKey: MasterKey): PageKey[] {
  const keys: PageKey[] = [];
  for (const row of rows) {
    if (row.purpose !== "page-token") continue;
    const key = { id: row.kid, secret: secretOf(row, masterKey) };
    if (row.state === "active") keys.unshift(key);
    else keys.push(key);
  }
  return keys;
}

function publicKeysOf({ pairs }: SigningKeys): JsonWebKey[] {
  return [...pairs].reverse().map(([kid, { publicKey }]) => {
    const { kty, crv, x, y } = publicKey.export({ format: "jwk" });
    return { kty, crv, x, y, kid, alg: "ES256", use: "sig" } as JsonWebKey;
  });
}
