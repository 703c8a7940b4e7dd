// The keys of the installation. They are stored, so that all processes share them. What they hold in memory is only what
// saves decrypting: a call that depends on a key reads which keys there are, so that it follows changes that others made.
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

/** The keys as of one read of the store. */
export interface Keys {
  /** The key that signs new API tokens. */
  getSigningKey(): SigningKey;
  /** The public key with this kid, if it may verify API tokens; the same object on every call. */
  findVerifyingKey(kid: string): KeyObject | undefined;
  /** The public keys of API tokens as JWKs, newest first (RFC 7517). */
  listPublicJwks(): readonly JsonWebKey[];
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
}

/** The keys as of the last read of the store, and how to read them again. */
export interface KeyRing extends Keys {
  /** The algorithm that the next key of API tokens will have, as of the last read of the store. */
  tokenAlgorithm(): TokenAlgorithm;
  /**
   * Reads the keys in the transaction of a call, which sees every change that was acknowledged before it began. Calls that
   * sign, or depend on an unknown key, take them from here.
   */
  at(tx: Tx): Promise<Keys>;
  /**
   * Reads the keys again: then they are at least those that were acknowledged before the call. Calls share a read that has
   * not begun, so there is one at a time, however many tokens with unknown keys come.
   *
   * @throws ApiError UNAVAILABLE when the store cannot be read
   */
  refresh(): Promise<void>;
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
  let view = buildKeyView(await rows(), masterKey);
  assertUsable(view);
  let reading: Promise<void> = Promise.resolve();
  let next: Promise<void> | undefined;

  async function read(): Promise<void> {
    const found = buildKeyView(await rows(), masterKey, view);
    assertUsable(found);
    view = found;
  }

  function buildPlan(schedule: KeySchedule): KeyPlan {
    return { rows: view.rows, schedule, algorithm, nowMs: clock() };
  }

  // The read under way may have begun before what this caller must see was committed.
  function refresh(): Promise<void> {
    next ??= reading
      .catch(() => {})
      .then(() => {
        next = undefined;
        reading = read();
        return reading;
      });
    return next;
  }

  return {
    ...createKeys(() => view),
    tokenAlgorithm: () => algorithm,
    async at(tx) {
      const isCurrent = formatStates(await tx.keys.listStates()) === formatStates(view.rows);
      // The view in memory stays: this transaction may be older than the one that it was read in.
      const found = isCurrent ? view : buildKeyView(await tx.keys.list(), masterKey, view);
      return createKeys(() => found);
    },
    refresh,
    isChangeDue: (schedule) => isChangeDue(buildPlan(schedule)),
    async advanceKeys(schedule, write = store.write) {
      await refresh();
      const plan = buildPlan(schedule);
      if (!isChangeDue(plan)) return [];
      const spare = isSuccessorDue(plan) ? await generateTokenKey(algorithm, masterKey, clock()) : undefined;
      const changes = await write(async (tx) => {
        const successor = spare && (await resealKeyForStore(tx, masterKey, spare));
        return applyDueChanges(tx, { ...plan, nowMs: clock() }, successor);
      });
      await refresh();
      return changes;
    },
  };
}

function createKeys(view: () => KeyView): Keys {
  return {
    getSigningKey: () => view().apiToken.getSigningKey(),
    findVerifyingKey: (kid) => view().apiToken.pairs.get(kid)?.publicKey,
    listPublicJwks: () => view().published,
    pageKeys: () => view().pageKeys,
    getAuditSigningKey: () => view().audit.getSigningKey(),
    findAuditVerifyingKey: (kid) => view().audit.pairs.get(kid)?.publicKey,
    listAuditJwks: () => toJwks(view().audit),
    getRegistrySigningKey: () => view().registry.getSigningKey(),
    listRegistryKeys: () => listTrusted(view()),
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
  if (before !== undefined && formatRows(rows) === formatRows(before.rows)) return { ...before, rows };
  const apiToken = buildSigningKeys("api-token", rows, masterKey, before?.apiToken);
  const audit = buildSigningKeys("audit", rows, masterKey, before?.audit);
  const registry = buildSigningKeys("registry", rows, masterKey, before?.registry);
  return { rows, apiToken, audit, registry, pageKeys: buildPageKeys(rows, masterKey), published: toJwks(apiToken) };
}

/** Formats all keys with their states, to compare them. */
function formatStates(rows: readonly Pick<KeyRow, "kid" | "state">[]): string {
  return rows.map(({ kid, state }) => `${kid} ${state}`).join();
}

function formatRows(rows: readonly KeyRow[]): string {
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
