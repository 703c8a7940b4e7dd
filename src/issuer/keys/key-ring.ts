// The keys of the installation in memory. They are stored, so that all nodes share them, and read repeatedly, so that
// all nodes follow changes.
import type { JsonWebKey, KeyObject } from "node:crypto";
import { algorithmOf, type SigningKey, type TokenAlgorithm, tokenAlgorithms } from "../../kernel/jws.js";
import type { PageKey } from "../../kernel/page-token.js";
import type { Clock } from "../../kernel/time.js";
import type { Store } from "../../store/store.js";
import type { KeyRow } from "../../store/tables/tokens.js";
import type { Tx } from "../../store/transaction.js";
import {
  generateKey,
  generateTokenKey,
  type KeyPair,
  type OtherPurpose,
  resealKeyForStore,
  type SigningPurpose,
  unsealKeyPair,
  unsealSecret,
} from "./key-generation.js";
import {
  applyDueChanges,
  isChangeDue,
  isSuccessorDue,
  type KeyPlan,
  type KeySchedule,
  type KeyStateChange,
} from "./key-states.js";
import { checkMasterKey, type MasterKey, verifyMasterKey } from "./master-key.js";

/** The keys in memory. */
export interface KeyRing {
  /**
   * The key that signs new API tokens, as of the last read of the store. Others may reject signatures of a node that
   * has not read the store for longer than the leeway of 30 s, for example because its machine was suspended. Callers
   * that can wait call `refresh` first.
   */
  getSigningKey(): SigningKey;
  /** The public key with this kid, if it may verify API tokens; the same object on every call. */
  findVerifyingKey(kid: string): KeyObject | undefined;
  /** The public keys of API tokens as JWKs, newest first (RFC 7517). */
  listPublicJwks(): readonly JsonWebKey[];
  /** The algorithm that the next key of API tokens will have, as of the last read of the store. */
  tokenAlgorithm(): TokenAlgorithm;
  /** The secrets of page tokens: the first one encrypts, all decrypt. */
  pageKeys(): readonly PageKey[];
  /** The key that signs heads of the audit log. */
  getAuditSigningKey(): SigningKey;
  /** The public key with this kid, if it may verify heads of the audit log. */
  findAuditVerifyingKey(kid: string): KeyObject | undefined;
  /** The public keys that verify heads of the audit log as JWKs, newest first. */
  listAuditJwks(): readonly JsonWebKey[];
  /** The key that signs tokens for the registry. */
  getRegistrySigningKey(): SigningKey;
  /**
   * The keys that the registry must trust: first the active one, for registries that read one key, then the next one. A
   * registry reads its trusted keys at start, so it needs both before a rotation.
   */
  listRegistryKeys(): readonly KeyPair[];
  /**
   * Reads the keys again unless that happened within the last second. Resolves to whether anything changed.
   *
   * @throws ApiError UNAVAILABLE when the store cannot be read.
   */
  refresh(): Promise<boolean>;
  /**
   * Reads the keys again. Concurrent calls share a read.
   *
   * @returns whether anything changed
   * @throws ApiError UNAVAILABLE when the store cannot be read
   */
  reload(): Promise<boolean>;
  /** Whether `advanceKeys` would change anything, as of the last read of the store. */
  isChangeDue(schedule: KeySchedule): boolean;
  /**
   * Reads the keys again and applies the state changes of API token keys that are due. All nodes may do this at once:
   * one node makes each change, and gets it as the result.
   *
   * @param write how the changes are written; that of the store unless set
   * @throws ApiError UNAVAILABLE when the store cannot be read or written
   */
  advanceKeys(schedule: KeySchedule, write?: Store["write"]): Promise<readonly KeyStateChange[]>;
}

export interface KeyRingDeps {
  readonly store: Store;
  readonly masterKey: MasterKey;
  readonly clock: Clock;
  /** The algorithm of API tokens until a server stores one, see {@link storeTokenAlgorithm}. */
  readonly tokenAlgorithm: TokenAlgorithm;
}

/** The shortest time between reads that unknown kids cause, in milliseconds. */
const REFRESH_PAUSE_MS = 1_000;

const otherPurposes: readonly OtherPurpose[] = ["page-token", "audit", "registry"];

/** The name of the stored algorithm. */
const ALGORITHM = "token-algorithm";

/**
 * Stores the algorithm of API tokens for the whole installation. Servers do it once, when they start, so nodes with
 * different settings agree on what the last one has, instead of each replacing the key of the other.
 */
export async function storeTokenAlgorithm(tx: Tx, algorithm: TokenAlgorithm): Promise<void> {
  await tx.settings.put(ALGORITHM, algorithm);
}

/**
 * Loads the keys and generates the missing ones, which are active at once: no cache can have the public keys of an
 * installation that had none.
 *
 * @throws Error when the keys were encrypted with another master key
 */
export async function openKeyRing(deps: KeyRingDeps): Promise<KeyRing> {
  await storeMissingKeys(deps);
  return loadKeyRing(deps, assertActiveKeys);
}

/**
 * Loads the keys and writes nothing. A restored installation has no key of API tokens before its next start; until then
 * `getSigningKey` throws.
 *
 * @throws Error when the keys were encrypted with another master key
 */
export async function readKeyRing(deps: KeyRingDeps): Promise<KeyRing> {
  await deps.store.read((tx) => verifyMasterKey(tx, deps.masterKey));
  return loadKeyRing(deps);
}

async function storeMissingKeys({ store, masterKey, clock, tokenAlgorithm }: KeyRingDeps): Promise<void> {
  const isSigning = ({ purpose, state }: KeyRow) => purpose === "api-token" && state === "active";
  // Generated here because a transaction must not wait.
  const first = (await store.read((tx) => tx.keys.list())).some(isSigning)
    ? undefined
    : await generateTokenKey(tokenAlgorithm, masterKey, clock());
  await store.write(async (tx) => {
    await checkMasterKey(tx, masterKey);
    const known = await tx.keys.list();
    const insert = async (row: KeyRow) => tx.keys.insert(await resealKeyForStore(tx, masterKey, row));
    if (first !== undefined && !known.some(isSigning)) await insert(first);
    for (const purpose of otherPurposes) {
      const inUse = known.some((row) => row.purpose === purpose && row.state === "active");
      if (!inUse) await insert(generateKey(purpose, masterKey, clock()));
    }
    const inWaiting = known.some((row) => row.purpose === "registry" && row.state === "pending");
    if (!inWaiting) await insert({ ...generateKey("registry", masterKey, clock()), state: "pending" });
  });
}

async function loadKeyRing(
  { store, masterKey, clock, tokenAlgorithm }: KeyRingDeps,
  assertUsable: (view: KeyView) => void = () => {},
): Promise<KeyRing> {
  let algorithm = tokenAlgorithm;
  const rows = () =>
    store.read(async (tx) => {
      const stored = await tx.settings.find(ALGORITHM);
      algorithm = tokenAlgorithms.find((one) => one === stored) ?? tokenAlgorithm;
      return tx.keys.list();
    });
  let readMs = clock();
  let view = buildKeyView(await rows(), masterKey);
  assertUsable(view);
  let reloading: Promise<boolean> | undefined;

  async function read(): Promise<boolean> {
    const startMs = clock();
    const before = view;
    const read = buildKeyView(await rows(), masterKey, before);
    assertUsable(read);
    view = read;
    // A failed read must not count as a read.
    readMs = startMs;
    return formatStates(view.rows) !== formatStates(before.rows);
  }

  function buildPlan(schedule: KeySchedule): KeyPlan {
    return { rows: view.rows, schedule, algorithm, nowMs: clock() };
  }

  function reload(): Promise<boolean> {
    reloading ??= read().finally(() => {
      reloading = undefined;
    });
    return reloading;
  }

  return {
    getSigningKey: () => view.apiToken.getSigningKey(),
    findVerifyingKey: (kid) => view.apiToken.pairs.get(kid)?.publicKey,
    listPublicJwks: () => view.published,
    tokenAlgorithm: () => algorithm,
    pageKeys: () => view.pageKeys,
    getAuditSigningKey: () => view.audit.getSigningKey(),
    findAuditVerifyingKey: (kid) => view.audit.pairs.get(kid)?.publicKey,
    listAuditJwks: () => toJwks(view.audit),
    getRegistrySigningKey: () => view.registry.getSigningKey(),
    listRegistryKeys: () => listTrusted(view),
    async refresh() {
      if (reloading === undefined && Math.abs(clock() - readMs) < REFRESH_PAUSE_MS) return false;
      return reload();
    },
    reload,
    isChangeDue: (schedule) => isChangeDue(buildPlan(schedule)),
    async advanceKeys(schedule, write = store.write) {
      await reload();
      const plan = buildPlan(schedule);
      if (!isChangeDue(plan)) return [];
      const spare = isSuccessorDue(plan) ? await generateTokenKey(algorithm, masterKey, clock()) : undefined;
      const changes = await write(async (tx) => {
        const successor = spare && (await resealKeyForStore(tx, masterKey, spare));
        return applyDueChanges(tx, { ...plan, nowMs: clock() }, successor);
      });
      await reload();
      return changes;
    },
  };
}

function listTrusted({ rows, registry }: KeyView): KeyPair[] {
  const findPairs = (wanted: KeyRow["state"]) =>
    rows.flatMap(({ kid, state }) => (state === wanted ? (registry.pairs.get(kid) ?? []) : []));
  return [...findPairs("active"), ...findPairs("pending")];
}

// The keys in the rows, decrypted.

/** The keys as of one read of the store. */
interface KeyView {
  readonly rows: readonly KeyRow[];
  readonly apiToken: SigningKeys;
  readonly audit: SigningKeys;
  readonly registry: SigningKeys;
  /** The first one encrypts, all decrypt. */
  readonly pageKeys: readonly PageKey[];
  /** The public keys of API tokens, newest first. */
  readonly published: readonly JsonWebKey[];
}

/** The keys of one purpose. */
interface SigningKeys {
  /**
   * The active key.
   *
   * @throws Error when there is none
   */
  getSigningKey(): SigningKey;
  /** All keys by kid, oldest first. */
  readonly pairs: ReadonlyMap<string, OpenedKey>;
}

/** A key pair and the encrypted text it was read from. */
interface OpenedKey extends KeyPair {
  readonly sealed: string;
}

/**
 * Decrypts the keys of `rows`.
 *
 * @param rows oldest first
 * @param before the view before: unchanged keys keep their objects, which caches of verified tokens refer to
 * @throws Error when a key was encrypted with another master key
 */
function buildKeyView(rows: readonly KeyRow[], masterKey: MasterKey, before?: KeyView): KeyView {
  if (before !== undefined && formatStates(rows) === formatStates(before.rows)) return { ...before, rows };
  const apiToken = buildSigningKeys("api-token", rows, masterKey, before?.apiToken);
  const audit = buildSigningKeys("audit", rows, masterKey, before?.audit);
  const registry = buildSigningKeys("registry", rows, masterKey, before?.registry);
  return { rows, apiToken, audit, registry, pageKeys: buildPageKeys(rows, masterKey), published: toJwks(apiToken) };
}

/** Formats all keys with their states, to compare them. */
function formatStates(rows: readonly KeyRow[]): string {
  return rows.map(({ kid, state, sealed }) => `${kid} ${state} ${sealed}`).join();
}

function buildSigningKeys(
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
    const pair = known?.sealed === sealed ? known : { ...unsealKeyPair(row, masterKey), sealed };
    pairs.set(kid, pair);
    if (state === "active") signing = { kid, key: pair.privateKey };
  }
  return {
    getSigningKey() {
      if (signing === undefined) throw new Error(`there is no active key for ${purpose}`);
      return signing;
    },
    pairs,
  };
}

function assertActiveKeys({ apiToken, audit, registry }: KeyView): void {
  for (const keys of [apiToken, audit, registry]) keys.getSigningKey();
}

function buildPageKeys(rows: readonly KeyRow[], masterKey: MasterKey): PageKey[] {
  const keys: PageKey[] = [];
  for (const row of rows) {
    if (row.purpose !== "page-token") continue;
    const key = { id: row.kid, secret: unsealSecret(row, masterKey) };
    if (row.state === "active") keys.unshift(key);
    else keys.push(key);
  }
  return keys;
}

function toJwks({ pairs }: SigningKeys): JsonWebKey[] {
  return [...pairs].reverse().map(([kid, { publicKey }]) => ({
    ...publicKey.export({ format: "jwk" }),
    kid,
    alg: algorithmOf(publicKey),
    use: "sig",
  }));
}
