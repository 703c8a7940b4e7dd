// Nodes that share a store, with a clock that the test sets.
import { join } from "node:path";
import { generateKey, generateTokenKey } from "../../../src/issuer/keys/key-generation.js";
import { type KeyRing, openKeyRing } from "../../../src/issuer/keys/key-ring.js";
import { buildKeySchedule } from "../../../src/issuer/keys/key-states.js";
import { type MasterKey, readMasterKey } from "../../../src/issuer/keys/master-key.js";
import type { TokenAlgorithm } from "../../../src/kernel/jws.js";
import { openSqlite } from "../../../src/store/sqlite/open.js";
import type { Store } from "../../../src/store/store.js";
import type { KeyPurpose, KeyRow } from "../../../src/store/tables/tokens.js";
import { newDataDir } from "../../support/data-dir.js";

/** A second in milliseconds. */
export const SECOND = 1_000;
/** A minute in milliseconds. */
export const MINUTE = 60 * SECOND;
/** An hour in milliseconds. */
export const HOUR = 60 * MINUTE;
/** A day in milliseconds. */
export const DAY = 24 * HOUR;

/** The default schedule of a service. */
export const schedule = buildKeySchedule({ keyRotation: 30 * 24 * 3600, jwksMaxAge: 300 });

/** Generates an active key; an ES256 key for API tokens. */
export async function newKey(purpose: KeyPurpose, masterKey: MasterKey, nowMs: number): Promise<KeyRow> {
  return purpose === "api-token" ? generateTokenKey("ES256", masterKey, nowMs) : generateKey(purpose, masterKey, nowMs);
}

/** A new installation. */
export interface KeyKit {
  readonly directory: string;
  readonly store: Store;
  readonly masterKey: MasterKey;
  /** The time of all clocks, in epoch milliseconds. */
  nowMs: number;
  /** Opens a ring, of a node whose clock is ahead by `skewMs`; ES256 unless given, because its keys are quickly made. */
  node(skewMs?: number, store?: Store, tokenAlgorithm?: TokenAlgorithm): Promise<KeyRing>;
  /** The keys of API tokens, oldest first. */
  rows(): Promise<KeyRow[]>;
  /** Opens the same data once more, as another process would. */
  anotherStore(): Promise<Store>;
  close(): Promise<void>;
}

/**
 * Makes one.
 *
 * @param open opens its data; SQLite in its directory unless given
 */
export async function openKit(open?: () => Promise<Store>): Promise<KeyKit> {
  const directory = newDataDir();
  const opened: Store[] = [];
  async function anotherStore(): Promise<Store> {
    const store = open === undefined ? openSqlite({ directory }) : await open();
    opened.push(store);
    return store;
  }
  const store = await anotherStore();
  const masterKey = readMasterKey(join(directory, "master.key"), true);
  const kit: KeyKit = {
    directory,
    store,
    masterKey,
    nowMs: Date.UTC(2026, 0, 1),
    node: (skewMs = 0, from = store, tokenAlgorithm = "ES256") =>
      openKeyRing({ store: from, masterKey, clock: () => kit.nowMs + skewMs, tokenAlgorithm }),
    async rows() {
      return (await store.read((tx) => tx.keys.list())).filter(({ purpose }) => purpose === "api-token");
    },
    anotherStore,
    async close() {
      for (const one of opened) await one.close();
    },
  };
  return kit;
}
