// The keys of the installation in memory: kept in the store, so that every node
// has the same, and read again and again, so that every node follows.
import type { JsonWebKey, KeyObject } from "node:crypto";
import type { Clock } from "../../kernel/clock.js";
import type { PageKey } from "../../kernel/page-token.js";
import type { SigningKey } from "../../pipeline/auth/api-token.js";
import type { KeyPurpose, KeyRow, Store } from "../../store/port.js";
import { type KeyPair, keyPairOf, newKey, type SigningPurpose, secretOf } from "./key-generation.js";
import { isMoveDue, type KeyMove, type KeySchedule, moveKeys } from "./key-states.js";
import { checkMasterKey, type MasterKey } from "./master-key.js";

/** The keys in memory. */
export interface KeyRing {
  /**
   * The key that signs new API tokens, as of the last look at the store. Others may refuse what is
   * signed by a node that has not looked for longer than the 30 s of leeway, because its machine
   * slept: who can wait calls `refresh` first.
   */
  signing(): SigningKey;
  /** The public key called `kid`, if it may verify API tokens; the same object for as long as it may. */
  verifying(kid: string): KeyObject | undefined;
  /** The public keys of API tokens, newest first, with nothing in them that is secret (RFC 7517). */
  published(): readonly JsonWebKey[];
  /** The secrets of page tokens: the first seals, all open. */
  pageKeys(): readonly PageKey[];
  /** The key that signs heads of the audit log. */
  auditSigning(): SigningKey;
  /** The public key called `kid`, if it may verify heads of the audit log. */
  auditVerifying(kid: string): KeyObject | undefined;
  /** The key that signs tokens for the registry. */
  registrySigning(): SigningKey;
  /**
   * The keys that the registry has to trust: the one in use, and the one that takes its place when
   * the operator says so. A registry reads what it trusts when it starts, so it needs both ahead of time.
   */
  registryTrusted(): readonly KeyPair[];
  /**
   * Reads the keys again when that was not done within a second; resolves to whether anything changed.
   *
   * @throws ApiError UNAVAILABLE when the store cannot be read.
   */
  refresh(): Promise<boolean>;
  /**
   * Reads the keys again and moves on those of API tokens whose time has come. Nodes may all do so at
   * once: each move is made by one of them, and told there.
   *
   * @throws ApiError UNAVAILABLE when the store cannot be used.
   */
  advanceKeys(schedule: KeySchedule): Promise<readonly KeyMove[]>;
}

/** What the ring needs. */
export interface KeyRingDeps {
  readonly store: Store;
  readonly masterKey: MasterKey;
  readonly clock: Clock;
}

/** Looks that strangers cause with key ids of their own are at least this far apart, in milliseconds. */
const REFRESH_PAUSE_MS = 1_000;

const purposes: readonly KeyPurpose[] = ["api-token", "page-token", "audit", "registry"];

/**
 * Loads the keys, making those that do not exist yet. These are in use at once: nobody can have kept
 * the public keys of an installation that had none.
 *
 * @throws Error when the master key is not the one they are sealed with.
 */
export async function openKeyRing({ store, masterKey, clock }: KeyRingDeps): Promise<KeyRing> {
  await store.write(async (tx) => {
    await checkMasterKey(tx, masterKey);
    const known = await tx.keys.list();
    for (const purpose of purposes) {
      const inUse = known.some((row) => row.purpose === purpose && row.state === "active");
      if (!inUse) await tx.keys.insert(newKey(purpose, masterKey, clock()));
    }
    const inWaiting = known.some((row) => row.purpose === "registry" && row.state === "pending");
    if (!inWaiting) await tx.keys.insert({ ...newKey("registry", masterKey, clock()), state: "pending" });
  });
  const rows = () => store.read((tx) => tx.keys.list());
  let lookedMs = clock();
  let view = viewOf(await rows(), masterKey);
  let looking: Promise<boolean> | undefined;

  async function read(): Promise<boolean> {
    const startMs = clock();
    const before = view;
    view = viewOf(await rows(), masterKey, before);
    // Not after a failure, which must not pass for having looked.
    lookedMs = startMs;
    return statesOf(view.rows) !== statesOf(before.rows);
  }

  function look(): Promise<boolean> {
    looking ??= read().finally(() => {
      looking = undefined;
    });
    return looking;
  }

  return {
    signing: () => view.apiToken.signing,
    verifying: (kid) => view.apiToken.pairs.get(kid)?.publicKey,
    published: () => view.published,
    pageKeys: () => view.pageKeys,
    auditSigning: () => view.audit.signing,
    auditVerifying: (kid) => view.audit.pairs.get(kid)?.publicKey,
    registrySigning: () => view.registry.signing,
    registryTrusted: () => trustedIn(view),
    async refresh() {
      if (looking === undefined && Math.abs(clock() - lookedMs) < REFRESH_PAUSE_MS) return false;
      return look();
    },
    async advanceKeys(schedule) {
      await look();
      if (!isMoveDue(view.rows, schedule, clock())) return [];
      const spare = newKey("api-token", masterKey, clock());
      const moves = await store.write((tx) => moveKeys(tx, schedule, clock(), spare));
      await look();
      return moves;
    },
  };
}

function trustedIn({ rows, registry }: KeyView): KeyPair[] {
  return rows.flatMap(({ kid, state }) => {
    const pair = state === "verify" ? undefined : registry.pairs.get(kid);
    return pair === undefined ? [] : [pair];
  });
}

// What the rows of the keys say, with the keys in them opened.

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
