// The keys of the installation, kept in the store so that every node has the
// same, each sealed with the master key and each for one purpose alone.
import { randomBytes } from "node:crypto";
import { type CryptoKey, calculateJwkThumbprint, exportJWK, generateKeyPair, importJWK, type JWK } from "jose";
import type { Clock } from "../kernel/clock.js";
import type { PageKey } from "../kernel/page-token.js";
import type { KeyPurpose, KeyRow, Store, Tx } from "../store/port.js";
import { checkMasterKey, type MasterKey } from "./master-key.js";

/** A key that signs API tokens or heads of the audit log. */
export interface SigningKey {
  readonly kid: string;
  readonly key: CryptoKey;
}

/** The keys in memory. */
export interface KeyRing {
  /** The key that signs new API tokens. */
  signing(): SigningKey;
  /** The public key called `kid`, if it may verify API tokens. */
  verifying(kid: string): CryptoKey | undefined;
  /** The secrets of page tokens: the first seals, all open. */
  pageKeys(): readonly PageKey[];
  /** The key that signs heads of the audit log. */
  auditSigning(): SigningKey;
  /** The public key called `kid`, if it may verify heads of the audit log. */
  auditVerifying(kid: string): CryptoKey | undefined;
  /** Reads the keys again when that was not done a moment ago; resolves to whether anything changed. */
  refresh(): Promise<boolean>;
}

/** What the ring needs. */
export interface KeyRingDeps {
  readonly store: Store;
  readonly masterKey: MasterKey;
  readonly clock: Clock;
}

/** Two looks at the store are at least this far apart, in milliseconds: unknown key ids cost nothing. */
const REFRESH_PAUSE_MS = 5_000;

const purposes: readonly KeyPurpose[] = ["api-token", "page-token", "audit"];

interface Loaded {
  readonly fingerprint: string;
  readonly apiToken: SigningKeys;
  readonly audit: SigningKeys;
  readonly pageKeys: readonly PageKey[];
}

interface SigningKeys {
  readonly signing: SigningKey;
  readonly verifying: ReadonlyMap<string, CryptoKey>;
}

/**
 * Loads the keys, making those that do not exist yet.
 *
 * @throws Error when the master key is not the one they are sealed with.
 */
export async function openKeyRing(deps: KeyRingDeps): Promise<KeyRing> {
  const { store, masterKey, clock } = deps;
  const newKeys: KeyRow[] = [];
  for (const purpose of purposes) newKeys.push(await newKey(purpose, masterKey, clock()));
  await store.write(async (tx) => {
    await checkMasterKey(tx, masterKey);
    const known = await tx.keys.list();
    for (const row of newKeys) if (!known.some(({ purpose }) => purpose === row.purpose)) await tx.keys.insert(row);
  });
  const rows = () => store.read((tx) => tx.keys.list());
  let loaded = await loadedFrom(await rows(), masterKey);
  let loadedMs = clock();
  let loading: Promise<boolean> | undefined;

  async function reload(): Promise<boolean> {
    try {
      const found = await rows();
      // The same keys stay the same objects, so that tokens verified with them stay remembered.
      if (fingerprintOf(found) === loaded.fingerprint) return false;
      loaded = await loadedFrom(found, masterKey);
      return true;
    } finally {
      loadedMs = clock();
      loading = undefined;
    }
  }

  return {
    signing: () => loaded.apiToken.signing,
    verifying: (kid) => loaded.apiToken.verifying.get(kid),
    pageKeys: () => loaded.pageKeys,
    auditSigning: () => loaded.audit.signing,
    auditVerifying: (kid) => loaded.audit.verifying.get(kid),
    refresh() {
      if (loading) return loading;
      if (Math.abs(clock() - loadedMs) < REFRESH_PAUSE_MS) return Promise.resolve(false);
      loading = reload();
      return loading;
    },
  };
}

async function loadedFrom(rows: readonly KeyRow[], masterKey: MasterKey): Promise<Loaded> {
  const of = (purpose: KeyPurpose) => rows.filter((row) => row.purpose === purpose);
  // Oldest first in the store: the newest active key of a purpose is the one in use.
  const pageKeys: PageKey[] = [];
  for (const row of of("page-token")) {
    const key = { id: row.kid, secret: masterKey.unseal(row.sealed, contextOf(row)) };
    if (row.state === "active") pageKeys.unshift(key);
    else pageKeys.push(key);
  }
  const apiToken = await signingKeys(of("api-token"), masterKey);
  const audit = await signingKeys(of("audit"), masterKey);
  return { fingerprint: fingerprintOf(rows), apiToken, audit, pageKeys };
}

// The public key is worked out from the sealed private one, not taken from beside it: whoever can
// change rows of the database could put a key of their own there, but cannot seal one.
async function signingKeys(rows: readonly KeyRow[], masterKey: MasterKey): Promise<SigningKeys> {
  const verifying = new Map<string, CryptoKey>();
  let signing: SigningKey | undefined;
  for (const row of rows) {
    const privateJwk: JWK = JSON.parse(masterKey.unseal(row.sealed, contextOf(row)).toString());
    verifying.set(row.kid, await cryptoKey(publicPartOf(privateJwk)));
    if (row.state === "active") signing = { kid: row.kid, key: await cryptoKey(privateJwk) };
  }
  if (signing === undefined) throw new Error(`no key in use signs ${rows[0]?.purpose ?? "anything"}`);
  return { signing, verifying };
}

function publicPartOf({ kty, crv, x, y }: JWK): JWK {
  return { kty, crv, x, y } as JWK;
}

function fingerprintOf(rows: readonly KeyRow[]): string {
  return rows.map(({ kid, state }) => `${kid} ${state}`).join();
}

async function cryptoKey(jwk: JWK): Promise<CryptoKey> {
  const key = await importJWK(jwk, "ES256");
  if (key instanceof Uint8Array) throw new TypeError("a signing key must be an EC key");
  return key;
}

/** A new key for a purpose. */
export function newKey(purpose: KeyPurpose, masterKey: MasterKey, nowMs: number): KeyRow | Promise<KeyRow> {
  return purpose === "page-token" ? newPageTokenKey(masterKey, nowMs) : newSigningKey(purpose, masterKey, nowMs);
}

// An ES256 key, named by its RFC 7638 thumbprint.
async function newSigningKey(purpose: "api-token" | "audit", masterKey: MasterKey, nowMs: number): Promise<KeyRow> {
  const { publicKey, privateKey } = await generateKeyPair("ES256", { extractable: true });
  const publicJwk = await exportJWK(publicKey);
  const row = {
    kid: await calculateJwkThumbprint(publicJwk),
    purpose,
    state: "active",
    publicJwk: JSON.stringify({ ...publicJwk, alg: "ES256", use: "sig" }),
    createTimeMs: nowMs,
  } as const;
  return { ...row, sealed: masterKey.seal(Buffer.from(JSON.stringify(await exportJWK(privateKey))), contextOf(row)) };
}

/** A new secret for page tokens. */
export function newPageTokenKey(masterKey: MasterKey, nowMs: number): KeyRow {
  const kid = randomBytes(8).toString("hex");
  const row = { kid, purpose: "page-token", state: "active", publicJwk: "", createTimeMs: nowMs } as const;
  return { ...row, sealed: masterKey.seal(randomBytes(32), contextOf(row)) };
}

/**
 * Makes `row` the key of its purpose; the one before only verifies from now on. Nothing it made
 * becomes invalid.
 */
export async function rotateKey(tx: Tx, row: KeyRow): Promise<void> {
  for (const { kid, purpose, state } of await tx.keys.list()) {
    if (purpose === row.purpose && state === "active") await tx.keys.setState(kid, "verify");
  }
  await tx.keys.insert(row);
}

function contextOf({ purpose, kid }: Pick<KeyRow, "purpose" | "kid">): string {
  return `${purpose} ${kid}`;
}
