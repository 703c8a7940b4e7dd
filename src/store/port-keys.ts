// What the rest of the service sees of the storage of keys and settings; part of port.ts.
import type { Awaitable } from "./port-lists.js";

/** What a key is for; keys never serve two purposes. */
export type KeyPurpose = "api-token" | "page-token" | "audit" | "registry";

/** Where a key stands; one that is gone from the store was removed. */
export type KeyState = "pending" | "active" | "verify";

/** A key as stored; what is secret is sealed with the master key. */
export interface KeyRow {
  readonly kid: string;
  readonly purpose: KeyPurpose;
  /** `pending` is published but makes nothing yet, `active` makes new tokens, `verify` opens old ones. */
  readonly state: KeyState;
  /** The public JWK as JSON; empty for secret keys. */
  readonly publicJwk: string;
  readonly sealed: string;
  readonly createTimeMs: number;
  /** When it moves on to its next state by itself, in epoch milliseconds; null where nothing is planned. */
  readonly nextTimeMs: number | null;
}

/** Keys. */
export interface KeyStore {
  list(): Awaitable<KeyRow[]>;
  insert(row: KeyRow): Awaitable<void>;
  setState(kid: string, state: KeyState, nextTimeMs: number | null): Awaitable<void>;
  /** Does nothing when it is not there. */
  delete(kid: string): Awaitable<void>;
}

/** Facts about the installation itself, such as the master key's check value. */
export interface SettingStore {
  get(name: string): Awaitable<string | undefined>;
  put(name: string, value: string): Awaitable<void>;
}
