// The states of API token keys: pending, active, verify, removed. Every change is one transaction that reads the
// states first, so concurrent changes of nodes and commands are serialized.

import { failedPrecondition, notFound, type ResourceKind } from "../../kernel/errors.js";
import type { TokenAlgorithm } from "../../kernel/jws.js";
import { LEEWAY_S, MAX_TOKEN_LIFE_S } from "../../pipeline/auth/api-token.js";
import type { KeyRow, KeyState } from "../../store/tables/tokens.js";
import type { Tx } from "../../store/transaction.js";
import { algorithmOfRow } from "./key-generation.js";

/** How long a key stays in each state, in milliseconds. */
export interface KeySchedule {
  /** Published, not used: until no cache has a key set without it. */
  readonly pending: number;
  /** Used for new tokens. */
  readonly active: number;
  /** Trusted, not used: until no token that it signed is valid. */
  readonly verify: number;
}

export interface KeyStateChange {
  readonly kid: string;
  readonly state: KeyState | "removed";
}

const keyKind: ResourceKind = { displayName: "key", type: "Key" };
/** A next change that is this much later than scheduled was planned with a wrong clock, in milliseconds. */
const WRONG_CLOCK_MS = 24 * 60 * 60 * 1000;

/** Builds the schedule from settings in seconds. */
export function buildKeySchedule(settings: { readonly keyRotation: number; readonly jwksMaxAge: number }): KeySchedule {
  const { keyRotation, jwksMaxAge } = settings;
  return {
    // The leeway covers clock differences and the time until every node has read the key.
    pending: (jwksMaxAge + Math.min(LEEWAY_S, jwksMaxAge)) * 1000,
    active: keyRotation * 1000,
    verify: (MAX_TOKEN_LIFE_S + LEEWAY_S) * 1000,
  };
}

/** Whether {@link applyDueChanges} would change anything. */
export function isChangeDue(plan: KeyPlan): boolean {
  return listDueChanges(plan).length > 0 || isSuccessorDue(plan);
}

/** What changes of keys depend on. */
export interface KeyPlan {
  readonly rows: readonly KeyRow[];
  readonly schedule: KeySchedule;
  /** The algorithm that API tokens are to have. */
  readonly algorithm: TokenAlgorithm;
  readonly nowMs: number;
}

/**
 * Applies the changes that are due: adds a pending successor before the active key ends or when it has another
 * algorithm, activates it when it was published for long enough, and removes keys that no valid token needs. The active
 * key stays active until another replaces it, however late this runs.
 *
 * @param spare a new key, which becomes the successor if one is due; without one, none is added
 */
export async function applyDueChanges(
  tx: Tx,
  given: Omit<KeyPlan, "rows">,
  spare: KeyRow | undefined,
): Promise<readonly KeyStateChange[]> {
  const { schedule, nowMs } = given;
  const plan = { ...given, rows: await tx.keys.list() };
  const changes: KeyStateChange[] = [];
  for (const { kid, from, to, nextTimeMs } of listDueChanges(plan)) {
    if (to === "removed") await tx.keys.delete(kid);
    else await tx.keys.setState(kid, to, nextTimeMs);
    if (to !== from) changes.push({ kid, state: to });
  }
  if (spare !== undefined && isSuccessorDue(plan)) {
    await tx.keys.insert({ ...spare, state: "pending", nextTimeMs: nowMs + schedule.pending });
    changes.push({ kid: spare.kid, state: "pending" });
  }
  return changes;
}

interface DueChange {
  readonly kid: string;
  readonly from: KeyState;
  readonly to: KeyState | "removed";
  readonly nextTimeMs: number;
}

function listDueChanges({ rows, schedule, nowMs }: Omit<KeyPlan, "algorithm">): DueChange[] {
  const keys = rows.filter(signsTokens);
  const successor = keys.find((row) => row.state === "pending" && isDue(row, nowMs));
  return keys.flatMap((row): DueChange | [] => {
    const { kid, state: from } = row;
    const into = (to: KeyState): DueChange => ({ kid, from, to, nextTimeMs: nowMs + schedule[to] });
    if (row === successor) return into("active");
    if (from === "active" && successor !== undefined) return into("verify");
    if (!isPlanned(row, schedule, nowMs)) return into(from);
    if (from === "verify" && isDue(row, nowMs)) return { kid, from, to: "removed", nextTimeMs: nowMs };
    return [];
  });
}

/** Whether {@link applyDueChanges} would add a successor, which needs a new key. */
export function isSuccessorDue({ rows, schedule, algorithm, nowMs }: KeyPlan): boolean {
  const keys = rows.filter(signsTokens);
  if (keys.some(({ state }) => state === "pending")) return false;
  const active = keys.find(({ state }) => state === "active");
  if (active === undefined) return false;
  return algorithmOfRow(active) !== algorithm || isDue(active, nowMs + schedule.pending);
}

function signsTokens({ purpose }: KeyRow): boolean {
  return purpose === "api-token";
}

function isDue({ nextTimeMs }: KeyRow, nowMs: number): boolean {
  return nextTimeMs !== null && nextTimeMs <= nowMs;
}

// Commands leave the schedule to servers, which know the settings.
function isPlanned({ state, nextTimeMs }: KeyRow, schedule: KeySchedule, nowMs: number): boolean {
  return nextTimeMs !== null && nextTimeMs <= nowMs + schedule[state] + WRONG_CLOCK_MS;
}

/** The pending key. */
export interface Successor {
  readonly kid: string;
  /** False when it was pending already. */
  readonly isNew: boolean;
}

/**
 * Adds `row` as the pending successor of the active API token key, unless one is pending already; {@link
 * applyDueChanges} activates it when it was published for long enough.
 */
export async function addSuccessor(tx: Tx, row: KeyRow): Promise<Successor> {
  const waiting = (await tx.keys.list()).find((one) => signsTokens(one) && one.state === "pending");
  if (waiting !== undefined) return { kid: waiting.kid, isNew: false };
  await tx.keys.insert({ ...row, state: "pending" });
  return { kid: row.kid, isNew: true };
}

/**
 * Makes `row` the active key of its purpose at once; the key before it only verifies. For keys that only this service
 * verifies: API token keys must be published first.
 */
export async function rotateKey(tx: Tx, row: KeyRow): Promise<void> {
  for (const { kid, purpose, state } of await tx.keys.list()) {
    if (purpose === row.purpose && state === "active") await tx.keys.setState(kid, "verify", null);
  }
  await tx.keys.insert(row);
}

/**
 * Activates the pending registry key at once: registries that trust the active key trust it too, because both were
 * exported together. Later exports leave out the key before it. `spare` becomes the pending key.
 */
export async function rotateRegistryKey(tx: Tx, spare: KeyRow): Promise<Successor> {
  const keys = (await tx.keys.list()).filter(({ purpose }) => purpose === "registry");
  const waiting = keys.find(({ state }) => state === "pending");
  for (const { kid, state } of keys) {
    if (state === "verify") await tx.keys.delete(kid);
    if (state === "active") await tx.keys.setState(kid, "verify", null);
  }
  await tx.keys.insert({ ...spare, state: waiting === undefined ? "active" : "pending" });
  if (waiting === undefined) return { kid: spare.kid, isNew: true };
  await tx.keys.setState(waiting.kid, "active", null);
  return { kid: waiting.kid, isNew: true };
}

export interface Revocation {
  /** The state of the key before. */
  readonly state: KeyState;
  /** Whether the spare key replaced it as the active key. */
  readonly replaced: boolean;
}

/**
 * Removes an API token key at once, so that no token that it signed is valid. If it was active, `spare` is active at
 * once: to publish it first would mean to sign nothing, or to sign with the revoked key.
 *
 * @param spare a new key, which is used if `kid` is the active key
 * @throws ApiError NOT_FOUND; FAILED_PRECONDITION for a key with another purpose
 */
export async function revokeKey(tx: Tx, kid: string, spare: KeyRow): Promise<Revocation> {
  const row = (await tx.keys.list()).find((one) => one.kid === kid);
  if (row === undefined) throw notFound(keyKind, kid);
  if (!signsTokens(row)) {
    throw failedPrecondition("KEY_PURPOSE", `key ${kid} is for ${row.purpose}; only keys for api-token can be revoked`);
  }
  await tx.keys.delete(kid);
  const replaced = row.state === "active";
  if (replaced) await tx.keys.insert(spare);
  return { state: row.state, replaced };
}
