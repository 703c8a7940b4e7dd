// What the rest of the service sees of the storage of keys and settings; part of port.ts.
import type { Awaitable } from "./port.js";

/** What a key is for; keys never serve two purposes. */
export type KeyPurpose = "api-token" | "page-token" | "audit";

/** A key as stored; what is secret is sealed with the master key. */
export interface KeyRow {
  readonly kid: string;
  readonly purpose: KeyPurpose;
  /** `active` makes new tokens, `verify` opens old ones. */
  readonly state: "active" | "verify";
  /** The public JWK as JSON; empty for secret keys. */
  readonly publicJwk: string;
  readonly sealed: string;
  readonly createTimeMs: number;
}

/** Keys. */
export interface KeyStore {
  list(): Awaitable<KeyRow[]>;
  insert(row: KeyRow): Awaitable<void>;
  setState(kid: string, state: KeyRow["state"]): Awaitable<void>;
}

/** Facts about the installation itself, such as the master key's check value. */
export interface SettingStore {
  get(name: string): Awaitable<string | undefined>;
  put(name: string, value: string): Awaitable<void>;
}
